"""make_wheel.py: a wheel as pip's tools write them: make_wheel.py PATH [wrong digest | outside | no record | no metadata]"""
import base64
import hashlib
import sys
import zipfile

path, *flaw = sys.argv[1:]
name, version = path.rsplit("/", 1)[-1].split("-")[:2]
files = {
    f"{name}/__init__.py": b"raise SystemExit('nobody runs this')\n",
    f"{name}/data/words.txt": "ein Wort, noch eines: äöü\n".encode() * 50,
    f"{name}/data/empty.txt": b"",
    f"{name}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
                                            "Summary: Words.\nLicense: UNKNOWN\n\nLicense: of the text\n".encode(),
    f"{name}-{version}.dist-info/LICENSE": b"\n  MIT License\n\nPermission is hereby granted\n",
}
if flaw == ["outside"]:
    files["../outside.txt"] = b"x"
if flaw == ["no metadata"]:
    del files[f"{name}-{version}.dist-info/METADATA"]
record = f"{name}-{version}.dist-info/RECORD"
lines = []
for k, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    lines.append(f"{k},sha256={'A' + digest[1:] if flaw == ['wrong digest'] and k.endswith('words.txt') else digest},{len(content)}")
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
    for k, content in files.items():
        wheel.writestr(k, content)
    if flaw != ["no record"]:
        wheel.writestr(record, "\n".join(lines + [f"{record},,"]) + "\n")
with open(path, "rb") as file:
    print(hashlib.sha256(file.read()).hexdigest())
