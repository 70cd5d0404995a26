"""PyTorch's fused convolution, measured as src/bin/gpu.rs measures the plugin: shapes in, microseconds out, both JSON."""

import json
import sys
import time

import torch

CAPTURED = 20

torch.backends.cudnn.benchmark = True


def measure(n, c, k, extent, window):
    def tensor(*dims):
        return torch.randn(dims, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)

    x, w = tensor(n, c, extent, extent), tensor(k, c, window, window)
    bias = torch.randn(k, device="cuda", dtype=torch.float16)
    pad = window // 2

    def run():
        return torch.cudnn_convolution_relu(x, w, bias, (1, 1), (pad, pad), (1, 1), 1)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(5):
            run()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(CAPTURED):
                run()
        kernel = []
        for _ in range(25):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            kernel.append(start.elapsed_time(end) * 1e3 / CAPTURED)
        host = []
        for _ in range(40):
            for _ in range(25):
                started = time.perf_counter()
                run()
                host.append((time.perf_counter() - started) * 1e6)
            stream.synchronize()
    kernel, host = sorted(kernel[5:]), sorted(host)
    return {
        "kernel": kernel[len(kernel) // 2],
        "host": host[len(host) // 2],
        "host_p99": host[int((len(host) - 1) * 0.99)],
    }


json.dump([measure(**shape) for shape in json.load(sys.stdin)], sys.stdout)
