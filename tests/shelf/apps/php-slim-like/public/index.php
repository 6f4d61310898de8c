<?php
require __DIR__ . '/../vendor/autoload.php';

$app = new Acme\Router();
$app->get('/', fn () => ['api' => 'acme']);
$app->run(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
