<?php
// Opening hours of the shops.
$shops = [];
for ($number = 0; $number < 40; $number++) {
    $shops[] = ['name' => "Shop $number", 'opens' => 8 + $number % 3, 'closes' => 18 + $number % 4];
}
echo "<ul>\n";
foreach ($shops as $shop) {
    printf("<li>%s: %d to %d</li>\n", htmlspecialchars($shop['name']), $shop['opens'], $shop['closes']);
}
echo "</ul>\n";
