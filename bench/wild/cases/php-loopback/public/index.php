<?php
// A page, and its menu, which is a part that other pages ask for too: /?part=menu
function menu(): string
{
    $entries = ['Home', 'News', 'Shop', 'Contact'];
    return '<ul>' . implode('', array_map(fn ($entry) => "<li>$entry</li>", $entries)) . '</ul>';
}

if (($_GET['part'] ?? '') === 'menu') {
    echo menu();
    exit;
}
if (getenv('MENU_INLINE') === '1') {
    $menu = menu();
} else {
    $own = "http://{$_SERVER['SERVER_ADDR']}:{$_SERVER['SERVER_PORT']}" . '/?part=menu';
    $menu = @file_get_contents($own, false, stream_context_create(['http' => ['timeout' => 1.5]]));
}
echo '<h1>Welcome</h1>', $menu === false ? '<p>(no menu)</p>' : $menu;
