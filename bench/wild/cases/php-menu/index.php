<?php
// The menu of a restaurant: sections, dishes, and their words in the guest's language.
$db = pg_connect(getenv('DATABASE_URL'));

function words($db, int $dish): string
{
    $row = pg_fetch_row(pg_query_params($db, 'select words from dish_words where dish = $1 and tongue = $2', [$dish, 'en']));
    return $row[0];
}

$lines = [];
if (getenv('ONE_QUERY') === '1') {
    $rows = pg_query($db, "select d.section, w.words, d.cents from dish d
        join dish_words w on w.dish = d.id and w.tongue = 'en' order by d.section, d.id");
    while ($row = pg_fetch_row($rows)) {
        $lines[] = [$row[0], $row[1], (int) $row[2]];
    }
} else {
    $sections = pg_query($db, 'select distinct section from dish order by section');
    while ($section = pg_fetch_row($sections)) {
        $dishes = pg_query_params($db, 'select id, cents from dish where section = $1 order by id', [$section[0]]);
        while ($dish = pg_fetch_row($dishes)) {
            $lines[] = [$section[0], words($db, (int) $dish[0]), (int) $dish[1]];
        }
    }
}
header('Content-Type: application/json');
echo json_encode(['dishes' => count($lines), 'first' => $lines[0]]), "\n";
