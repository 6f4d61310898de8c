<?php
// The expected sales of two weeks, smoothed from a year and a half of days.
function sales(int $days): array
{
    $series = [];
    for ($day = 0; $day < $days; $day++) {
        $series[] = 200 + 40 * sin($day / 7 * 2 * M_PI) + 0.1 * $day + ($day * 7919 % 31);
    }
    return $series;
}

function forecast(array $series, float $alpha, float $beta, int $ahead): array
{
    $level = $series[0];
    $trend = $series[1] - $series[0];
    $error = 0.0;
    foreach ($series as $value) {
        $error += ($value - $level - $trend) ** 2;
        $before = $level;
        $level = $alpha * $value + (1 - $alpha) * ($level + $trend);
        $trend = $beta * ($level - $before) + (1 - $beta) * $trend;
    }
    $days = [];
    for ($n = 1; $n <= $ahead; $n++) {
        $days[] = round($level + $n * $trend, 1);
    }
    return [$error, $days];
}

$series = sales(540);
$best = [INF, []];
for ($alpha = 0.1; $alpha < 1; $alpha += 0.1) {
    for ($beta = 0.1; $beta < 1; $beta += 0.1) {
        $found = forecast($series, $alpha, $beta, 14);
        if ($found[0] < $best[0]) {
            $best = $found;
        }
    }
}
header('Content-Type: application/json');
echo json_encode(['error' => round($best[0], 2), 'days' => $best[1]]);
