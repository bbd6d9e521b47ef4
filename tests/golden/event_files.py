#!/usr/bin/env python3
"""Write the records that TensorBoard's own code makes of some events, in hex, to data/tensorboard.lua.

Needs the package tensorboard; tests/lua/files/test_tensorboard.lua, which reads the data, doesn't.
"""

import io
import pathlib

from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def record(event):
    file = io.BytesIO()
    RecordWriter(file).write(event.SerializeToString())
    return file.getvalue().hex()


def event(value, step, walltime=1.5):
    return event_pb2.Event(wall_time=walltime, step=step, summary=summary_pb2.Summary(value=[value]))


def main():
    value = summary_pb2.Summary.Value
    metadata = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"))
    text = tensor_pb2.TensorProto(dtype="DT_STRING", string_val=["*é*".encode()],
                                  tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)]))
    histogram = summary_pb2.HistogramProto(min=1.0, max=4.0, num=4, sum=10.0, sum_squares=30.0, bucket_limit=[1.0, 2.5, 4.0], bucket=[0, 2, 2])
    rows = {
        "scalar": record(event(value(tag="loss/train", simple_value=0.1), 300)),
        "infinite": record(event(value(tag="x", simple_value=float("inf")), 1)),
        "text": record(event(value(tag="note/text_summary", metadata=metadata, tensor=text), 5)),
        "histogram": record(event(value(tag="h", histo=histogram), 2)),
        "without_step": record(event_pb2.Event(wall_time=1.5, summary=summary_pb2.Summary(value=[value(tag="a", simple_value=2.0)]))),
    }
    target = pathlib.Path(__file__).with_name("data") / "tensorboard.lua"
    body = "".join(f'    {name} = "{text}",\n' for name, text in rows.items())
    target.write_text(f"-- tensorboard.lua: written by tests/golden/event_files.py.\nreturn {{\n{body}}}\n")


main()
