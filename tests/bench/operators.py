"""The cases of operators.lua in PyTorch, printed the same way."""
import torch

from bench import case


def main():
    torch.manual_seed(0)
    a, b, g = torch.ones(1), torch.ones(1), torch.ones(1, requires_grad=True)
    m2 = torch.ones(2, 2)
    case("add 1", lambda: a + b, 1)
    case("mul_scalar 1", lambda: a * 2, 1)
    case("add_ 1", lambda: a.add_(b), 1)
    case("sum 1", a.sum, 1)
    case("add_recorded 1", lambda: g + b, 1)
    case("mul_backward 1", lambda: (g * b).backward(), 1)
    case("select 10", lambda: torch.ones(10)[2], 1)
    case("matmul 2x2", lambda: m2.mm(m2), 1)
    for n in (1000, 1000000, 10000000):
        x, y = torch.randn(n), torch.randn(n)
        case(f"add {n}", lambda x=x, y=y: x + y)
        case(f"exp {n}", x.exp)
        case(f"sum {n}", x.sum)
    s, big = torch.randn(256, 1000), torch.randn(2048, 1024)
    case("softmax 256x1000", lambda: s.softmax(1))
    case("transpose_copy 2048x1024", lambda: big.t().contiguous())
    case("sum_dim1 2048x1024", lambda: big.sum(0))
    case("randn 1000000", lambda: torch.randn(1000000))
    for n in (32, 128, 512, 1024):
        x, y = torch.randn(n, n), torch.randn(n, n)
        case(f"matmul {n}x{n}", lambda x=x, y=y: x.mm(y))
    images, kernels = torch.randn(32, 64, 28, 28), torch.randn(64, 64, 3, 3)
    case("conv2d 32x64x28x28", lambda: torch.conv2d(images, kernels, padding=1))
    case("max_pool2d 32x64x28x28", lambda: torch.max_pool2d(images, 2))


if __name__ == "__main__":
    main()
