<?php
// Write the texts of a language: locale/nl.po for translators, and locale/nl.php.
$folder = __DIR__ . '/locale';
is_dir($folder) || mkdir($folder, 0755);
$po = '';
$texts = [];
for ($n = 1; $n <= 3000; $n++) {
    $texts["text $n"] = "tekst nummer $n van het stadhuis, met een \"citaat\" erin";
    $po .= "#: pages/page$n.php:12\nmsgid \"text $n\"\nmsgstr \"" . addcslashes($texts["text $n"], '"\\') . "\"\n\n";
}
file_put_contents("$folder/nl.po", $po);
file_put_contents("$folder/nl.php", '<?php return ' . var_export($texts, true) . ';');
