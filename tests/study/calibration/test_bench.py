"""How much a calibration measures."""

from prony.study.calibration.bench import QUICK, USUAL


def test_an_effort_has_enough_blocks_for_a_verdict():
    from prony.figures.statistics.compare import LEAST_BLOCKS

    assert LEAST_BLOCKS <= QUICK.blocks < USUAL.blocks
    assert USUAL.in_words() == "10 blocks of 1.5 s windows"
