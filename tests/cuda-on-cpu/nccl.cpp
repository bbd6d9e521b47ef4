/* nccl.cpp: NCCL between processes of one machine: ranks leave messages for each other as files in
 * the folder that the id names, and take away those that are for them.
 *
 * It is as strict as the library may be: what it was told to do is in the stream only once
 * ncclCommGetAsyncError has said so, which takes some turns; until then nothing else may be said to
 * it. A send is done when it was received. Ranks that want different things wait for ever.
 *
 *   TIDE_PLAYED_NCCL        where the folders are made (/tmp)
 *   TIDE_PLAYED_NCCL_FAIL   the n-th call of this process finds a rank gone
 */
#include "include/nccl.h"
#include "library.h"
#include "runtime.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace td_played;

namespace {

/* A message to or from another rank. */
struct message {
    std::string file, head; /* the head says what both must want alike */
    const void *from = nullptr;
    void *to = nullptr; /* NULL: `take` is called */
    size_t bytes = 0;
    std::string body;
    bool there = false; /* written, or received */
};

/* One of the library's calls. */
struct request {
    const char *name;
    cudaStream_t stream;
    std::vector<message> sends, receives;
    std::function<void(request &)> finish; /* writes what comes of the messages */
};
typedef std::shared_ptr<request> request_ref;

struct shared {
    std::string folder;
    int n, rank;
    std::atomic<bool> aborted{false}, broken{false};
};

} // namespace

struct ncclComm {
    std::shared_ptr<shared> of;
    std::vector<int> sent, received; /* messages to and from each rank */
    bool joined = false;
    dice turns;
    unsigned busy = 0; /* turns until it has done what it was told */
    std::vector<request_ref> told;
};

namespace {

thread_local int depth; /* of groups */
thread_local std::vector<std::pair<ncclComm_t, request_ref>> grouped;
std::atomic<int> calls;

std::string rank_file(const shared &of, int rank) {
    return of.folder + "/rank-" + std::to_string(rank);
}

bool exists(const std::string &file) {
    return access(file.c_str(), F_OK) == 0;
}

void write_file(const std::string &file, const std::string &text) {
    std::string draft = file + "~";
    FILE *f = fopen(draft.c_str(), "wb");
    if (!f || fwrite(text.data(), 1, text.size(), f) != text.size() || fclose(f) != 0 ||
        rename(draft.c_str(), file.c_str()) != 0)
        die("ncclComm: %s can't be written", file.c_str());
}

std::string read_file(const std::string &file) {
    std::string text;
    char buffer[1 << 14];
    FILE *f = fopen(file.c_str(), "rb");
    for (size_t n; f && (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        text.append(buffer, n);
    if (f)
        fclose(f);
    return text;
}

cudaDataType type_of(ncclDataType_t type) {
    switch (type) {
    case ncclInt8:
        return CUDA_R_8I;
    case ncclUint8:
        return CUDA_R_8U;
    case ncclInt32:
        return CUDA_R_32I;
    case ncclInt64:
        return CUDA_R_64I;
    case ncclFloat16:
        return CUDA_R_16F;
    case ncclFloat32:
        return CUDA_R_32F;
    case ncclFloat64:
        return CUDA_R_64F;
    case ncclBfloat16:
        return CUDA_R_16BF;
    case ncclUint32:
    case ncclUint64:
        break;
    }
    die("nccl: type %d", (int)type);
}

template <typename T> T reduced(ncclRedOp_t op, T a, T b) {
    switch (op) {
    case ncclSum:
    case ncclAvg:
        return (T)(a + b);
    case ncclProd:
        return (T)(a * b);
    case ncclMax:
        return a != a || a > b ? a : b;
    case ncclMin:
        return a != a || a < b ? a : b;
    }
    die("nccl: operation %d", (int)op);
}

/* In the order of ranks, rounded at each step. */
void reduce(ncclRedOp_t op, ncclDataType_t type, int n, size_t count, void *into,
            const std::function<const char *(int)> &of) {
    cudaDataType t = type_of(type);
    std::string sum(of(0), count * size_of(t));
    for (int r = 1; r < n; r++)
        for (size_t k = 0; k < count; k++)
            if (t == CUDA_R_64I) {
                uint64_t a, b;
                memcpy(&a, &sum[k * 8], 8);
                memcpy(&b, of(r) + k * 8, 8);
                a = op == ncclSum    ? a + b
                    : op == ncclProd ? a * b
                                     : (uint64_t)reduced(op, (int64_t)a, (int64_t)b);
                memcpy(&sum[k * 8], &a, 8);
            } else {
                store(t, &sum[0], k, reduced(op, load(t, sum.data(), k), load(t, of(r), k)));
            }
    for (size_t k = 0; op == ncclAvg && k < count; k++)
        store(t, &sum[0], k, load(t, sum.data(), k) / n);
    memcpy(into, sum.data(), sum.size());
}

/* ---- one call ---- */

std::string name_of(const shared &of, int from, int to, int number) {
    return of.folder + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" +
           std::to_string(number);
}

void add_send(ncclComm_t comm, request &c, int peer, const std::string &head, const void *from,
              size_t bytes) {
    message m;
    m.file = name_of(*comm->of, comm->of->rank, peer, comm->sent[(size_t)peer]++);
    m.head = head;
    m.from = from;
    m.bytes = bytes;
    c.sends.push_back(m);
}

void add_receive(ncclComm_t comm, request &c, int peer, const std::string &head, void *to,
                 size_t bytes) {
    message m;
    m.file = name_of(*comm->of, peer, comm->of->rank, comm->received[(size_t)peer]++);
    m.head = head;
    m.to = to;
    m.bytes = bytes;
    c.receives.push_back(m);
}

/* Has everything been sent and received? Device memory is open. */
bool has_come(shared &of, request &c) {
    bool all = true;
    if (of.aborted)
        return true;
    if (of.broken)
        return false;
    for (message &m : c.sends)
        if (!m.there) {
            write_file(m.file, m.head + std::string((const char *)m.from, m.bytes));
            m.there = true;
        }
    for (message &m : c.receives) {
        if (all && !m.there && exists(m.file)) {
            std::string text = read_file(m.file);
            if (text.compare(0, m.head.size(), m.head) == 0 &&
                text.size() == m.head.size() + m.bytes) {
                m.body = text.substr(m.head.size());
                m.there = true;
                unlink(m.file.c_str());
            }
        }
        all &= m.there;
    }
    for (message &m : c.sends)
        all = all && !exists(m.file);
    return all;
}

void run(shared &of, request &c) {
    if (of.aborted)
        return;
    for (message &m : c.receives)
        if (m.to)
            memcpy(m.to, m.body.data(), m.bytes);
    if (c.finish)
        c.finish(c);
}

/* What the communicator was told goes into the stream; calls of a group as one. */
void enqueue_all(ncclComm_t comm) {
    std::vector<request_ref> told;
    told.swap(comm->told);
    if (told.empty())
        return;
    std::shared_ptr<shared> of = comm->of;
    (void)enqueue_library(
        told[0]->stream, told[0]->name,
        [of, told] {
            for (const request_ref &c : told)
                run(*of, *c);
        },
        [of, told] {
            bool all = true;
            for (const request_ref &c : told)
                all &= has_come(*of, *c);
            return all;
        });
}

ncclResult_t tell(ncclComm_t comm, const std::vector<request_ref> &what) {
    const char *fail = getenv("TIDE_PLAYED_NCCL_FAIL");
    if (!comm->joined || comm->busy || !comm->told.empty())
        die("%s: the communicator has not done what it was told before", what[0]->name);
    if (fail && ++calls == strtol(fail, nullptr, 10))
        comm->of->broken = true;
    comm->told = what;
    comm->busy = comm->turns.draw(3);
    if (comm->busy)
        return ncclInProgress;
    enqueue_all(comm);
    return ncclSuccess;
}

ncclResult_t give(ncclComm_t comm, const request_ref &c) {
    if (!is_stream(c->stream))
        return ncclInvalidArgument;
    if (!depth)
        return tell(comm, {c});
    grouped.emplace_back(comm, c);
    return ncclSuccess;
}

request_ref new_request(const char *name, cudaStream_t stream) {
    request_ref c = std::make_shared<request>();
    c->name = name;
    c->stream = stream;
    return c;
}

std::string head_of(const char *name, size_t count, int type, int op, int root) {
    return std::string(name) + " " + std::to_string(count) + " " + std::to_string(type) + " " +
           std::to_string(op) + " " + std::to_string(root) + "\n";
}

/* What the other ranks of a call sent, in their order, with this rank's own in its place. */
const char *body_of(const request &c, int mine, const void *own, int rank) {
    return rank == mine ? (const char *)own
                        : c.receives[(size_t)(rank < mine ? rank : rank - 1)].body.data();
}

} // namespace

/* ---- communicators ---- */

ncclResult_t ncclGetVersion(int *version) {
    *version = 22003;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    const char *where = getenv("TIDE_PLAYED_NCCL");
    snprintf(id->internal, sizeof id->internal, "%s/tide-nccl-XXXXXX",
             where && *where ? where : "/tmp");
    return mkdtemp(id->internal) ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    *comm = nullptr;
    if (config->size < sizeof *config || config->magic != 0xcafebeef || config->version < 21400 ||
        config->blocking)
        return ncclInvalidArgument;
    if (rank < 0 || rank >= n || !memchr(id.internal, 0, sizeof id.internal) ||
        !exists(id.internal))
        return ncclInvalidArgument;
    ncclComm *c = new ncclComm;
    c->of = std::make_shared<shared>();
    c->of->folder = id.internal;
    c->of->n = n;
    c->of->rank = rank;
    c->sent.resize((size_t)n);
    c->received.resize((size_t)n);
    c->turns.state = S.seed + (uint64_t)rank;
    write_file(rank_file(*c->of, rank), std::to_string(n));
    *comm = c;
    return ncclInProgress;
}

/* All ranks' files, before any goes away: those who leave wait for nobody. */
static bool have_joined(const shared &of) {
    for (int r = 0; r < of.n; r++)
        if (!exists(rank_file(of, r)))
            return false;
    return true;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    *error = ncclInProgress;
    if (comm->of->broken) {
        *error = ncclRemoteError;
    } else if (!comm->joined) {
        comm->joined = have_joined(*comm->of);
    } else if (comm->busy) {
        comm->busy--;
    } else {
        enqueue_all(comm);
        *error = ncclSuccess;
    }
    return ncclSuccess;
}

/* The last rank that leaves takes the folder away. */
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    shared &of = *comm->of;
    of.aborted = true;
    write_file(rank_file(of, of.rank) + "-left", "");
    bool all = true;
    for (int r = 0; r < of.n; r++)
        all &= exists(rank_file(of, r) + "-left");
    for (int r = 0; all && r < of.n; r++)
        for (const char *end : {"", "-left"})
            unlink((rank_file(of, r) + end).c_str());
    if (all)
        rmdir(of.folder.c_str());
    delete comm;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError       ? "remote process exited or there was a network error"
           : result == ncclInvalidArgument ? "invalid argument"
           : result == ncclSystemError     ? "unhandled system error"
                                           : "another error";
}

const char *ncclGetLastError(ncclComm_t) {
    return "";
}

/* ---- groups of calls ---- */

ncclResult_t ncclGroupStart(void) {
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    std::vector<request_ref> all;
    if (--depth || grouped.empty())
        return ncclSuccess;
    ncclComm_t comm = grouped[0].first;
    for (auto &[of, c] : grouped) {
        if (of != comm || c->stream != grouped[0].second->stream)
            die("ncclGroupEnd: calls of several communicators or streams");
        all.push_back(c);
    }
    grouped.clear();
    return tell(comm, all);
}

/* ---- calls ---- */

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    size_t bytes = count * size_of(type_of(type));
    int n = comm->of->n, mine = comm->of->rank;
    request_ref c = new_request("ncclAllReduce", stream);
    check_range(c->name, "send", send, bytes);
    check_range(c->name, "recv", recv, bytes);
    std::string head = head_of(c->name, count, type, op, 0);
    for (int r = 0; r < comm->of->n; r++)
        if (r != comm->of->rank) {
            add_send(comm, *c, r, head, send, bytes);
            add_receive(comm, *c, r, head, nullptr, bytes);
        }
    c->finish = [=](request &done) {
        reduce(op, type, n, count, recv, [&](int r) { return body_of(done, mine, send, r); });
    };
    return give(comm, c);
}

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    size_t bytes = count * size_of(type_of(type));
    int n = comm->of->n, mine = comm->of->rank;
    request_ref c = new_request("ncclReduce", stream);
    check_range(c->name, "send", send, bytes);
    std::string head = head_of(c->name, count, type, op, root);
    if (root != comm->of->rank) {
        add_send(comm, *c, root, head, send, bytes);
        return give(comm, c);
    }
    check_range(c->name, "recv", recv, bytes);
    for (int r = 0; r < comm->of->n; r++)
        if (r != root)
            add_receive(comm, *c, r, head, nullptr, bytes);
    c->finish = [=](request &done) {
        reduce(op, type, n, count, recv, [&](int r) { return body_of(done, mine, send, r); });
    };
    return give(comm, c);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    size_t bytes = count * size_of(type_of(type));
    int n = comm->of->n, mine = comm->of->rank;
    request_ref c = new_request("ncclReduceScatter", stream);
    check_range(c->name, "send", send, bytes * (size_t)comm->of->n);
    check_range(c->name, "recv", recv, bytes);
    std::string head = head_of(c->name, count, type, op, 0);
    const char *from = (const char *)send;
    for (int r = 0; r < comm->of->n; r++)
        if (r != comm->of->rank) {
            add_send(comm, *c, r, head, from + bytes * (size_t)r, bytes);
            add_receive(comm, *c, r, head, nullptr, bytes);
        }
    c->finish = [=](request &done) {
        reduce(op, type, n, count, recv,
               [&](int r) { return body_of(done, mine, from + bytes * (size_t)mine, r); });
    };
    return give(comm, c);
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
    size_t bytes = count * size_of(type_of(type));
    request_ref c = new_request("ncclBroadcast", stream);
    check_range(c->name, "recv", recv, bytes);
    std::string head = head_of(c->name, count, type, 0, root);
    if (root != comm->of->rank) {
        add_receive(comm, *c, root, head, recv, bytes);
        return give(comm, c);
    }
    check_range(c->name, "send", send, bytes);
    for (int r = 0; r < comm->of->n; r++)
        if (r != root)
            add_send(comm, *c, r, head, send, bytes);
    c->finish = [=](request &) { memmove(recv, send, bytes); };
    return give(comm, c);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
    size_t bytes = count * size_of(type_of(type));
    request_ref c = new_request("ncclAllGather", stream);
    check_range(c->name, "send", send, bytes);
    check_range(c->name, "recv", recv, bytes * (size_t)comm->of->n);
    std::string head = head_of(c->name, count, type, 0, 0);
    char *to = (char *)recv;
    for (int r = 0; r < comm->of->n; r++)
        if (r != comm->of->rank) {
            add_send(comm, *c, r, head, send, bytes);
            add_receive(comm, *c, r, head, to + bytes * (size_t)r, bytes);
        }
    int rank = comm->of->rank;
    c->finish = [=](request &) { memmove(to + bytes * (size_t)rank, send, bytes); };
    return give(comm, c);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    size_t bytes = count * size_of(type_of(type));
    request_ref c = new_request("ncclSend", stream);
    check_range(c->name, "send", send, bytes);
    add_send(comm, *c, peer, head_of("message", count, type, 0, 0), send, bytes);
    return give(comm, c);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    size_t bytes = count * size_of(type_of(type));
    request_ref c = new_request("ncclRecv", stream);
    check_range(c->name, "recv", recv, bytes);
    add_receive(comm, *c, peer, head_of("message", count, type, 0, 0), recv, bytes);
    return give(comm, c);
}
