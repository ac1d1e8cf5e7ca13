"""F6: batch norm is torch's in one process, and several processes with a slice each compute what one would."""

from __future__ import annotations

import pytest
import torch
from torch import multiprocessing, nn

from nn.ranks import inputs, make, run, worker
from weft.nn.norm import BatchNorm1d, BatchNorm2d


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 5), (6, 3, 4, 4)])
def test_one_process_gets_torchs_batch_norm_bit_for_bit(shape: tuple[int, ...]) -> None:
    """F6: (x − mean) / √(σ² + ε), scale and shift; outputs, gradients and running statistics."""
    ours = make(shape)
    theirs = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(shape[1]).double()
    theirs.load_state_dict(ours.state_dict())
    for found, expected in zip(run(ours, *inputs(shape)).values(), run(theirs, *inputs(shape)).values(), strict=True):
        assert torch.equal(found, expected)
    x = inputs(shape)[0][0]
    assert torch.equal(ours.eval()(x), theirs.eval()(x))


def test_batch_norm_is_its_formula() -> None:
    """F6: zero mean and unit deviation for each channel over batch and positions, by the library's √(σ² + ε)."""
    x = torch.randn(8, 2, 5, 5, dtype=torch.float64) * 4 + 1
    norm = BatchNorm2d(2).double()
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    torch.testing.assert_close(norm(x), (x - mean) / (variance + 1e-5).sqrt())


CASES: dict[str, tuple[tuple[int, ...], list[int]]] = {
    "images in halves": ((6, 3, 4, 4), [0, 3, 6]),
    "sequences in halves": ((4, 3, 5), [0, 2, 4]),
    "vectors in uneven slices": ((7, 3), [0, 5, 7]),
    "nothing left for the second": ((5, 3), [0, 5, 5]),
}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, torch.Tensor]]]:
    """The results of two processes, for every case."""
    folder = tmp_path_factory.mktemp("ranks")
    multiprocessing.spawn(worker, args=(2, str(folder), CASES), nprocs=2)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("case", CASES)
def test_two_processes_compute_what_one_computes(case: str, ranks: list[dict[str, dict[str, torch.Tensor]]]) -> None:
    """F6: outputs, input gradients, summed parameter gradients and running statistics, over two steps."""
    parts = [results[case] for results in ranks]
    shape, _ = CASES[case]
    whole = run(make(shape), *inputs(shape))
    for name in ("outputs", "x.grad"):
        torch.testing.assert_close(torch.cat([part[name] for part in parts], dim=1), whole[name])
    for name in ("weight.grad", "bias.grad"):
        torch.testing.assert_close(sum(part[name] for part in parts), whole[name])
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        for part in parts:
            torch.testing.assert_close(part[name], whole[name])


def test_a_wrong_number_of_axes_is_refused() -> None:
    with pytest.raises(ValueError, match="batch, channels, height, width"):
        BatchNorm2d(3)(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="batch, channels"):
        BatchNorm1d(3)(torch.zeros(2, 3, 4, 4))
