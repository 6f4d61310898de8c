<?php
// Writes the classes that a generator makes out of the model: php tools/build.php
require __DIR__ . '/autoload.php';
is_dir(BUILD) || mkdir(BUILD);
foreach (range(1, 80) as $number) {
    $methods = '';
    foreach (range(1, 40) as $field) {
        $methods .= "    public function field$field(string \$language): array\n    {\n"
            . "        \$names = ['en' => 'Field $field of $number', 'de' => 'Feld $field von $number'];\n"
            . "        return ['name' => \$names[\$language] ?? 'none', 'size' => $field * $number, 'list' => [1, 2, $field]];\n"
            . "    }\n\n";
    }
    $title = "    public function title(string \$language): string\n    {\n"
        . "        return \$this->field1(\$language)['name'];\n    }\n";
    file_put_contents(BUILD . "/Part$number.php", "<?php\nnamespace Shop;\n\nclass Part$number\n{\n$methods$title}\n");
}
