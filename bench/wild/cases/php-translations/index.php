<?php
// A page of a town hall, in the visitor's language.
declare(strict_types=1);

/** Read a file of translations: msgid and msgstr, as translators write them. */
function read_po(string $file): array
{
    $texts = [];
    $id = null;
    foreach (file($file, FILE_IGNORE_NEW_LINES) as $line) {
        if (preg_match('/^msgid\s+"((?:[^"\\\\]|\\\\.)*)"$/', $line, $found)) {
            $id = stripcslashes($found[1]);
        } elseif ($id !== null && preg_match('/^msgstr\s+"((?:[^"\\\\]|\\\\.)*)"$/', $line, $found)) {
            $texts[$id] = stripcslashes($found[1]);
            $id = null;
        }
    }
    return $texts;
}

function translations(string $language): array
{
    $compiled = __DIR__ . "/locale/$language.php";
    if (getenv('TRANSLATIONS') === 'php' && is_file($compiled)) {
        return require $compiled;
    }
    return read_po(__DIR__ . "/locale/$language.po");
}

$texts = translations('nl');
$t = fn (string $id): string => htmlspecialchars($texts[$id] ?? $id);

header('Content-Type: text/html; charset=utf-8');
echo '<!doctype html><title>', $t('text 1'), '</title><ul>';
for ($n = 1; $n <= 25; $n++) {
    echo '<li>', $t("text $n"), '</li>';
}
echo '</ul>';
