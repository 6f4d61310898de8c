<?php
spl_autoload_register(function (string $class): void {
    if (str_starts_with($class, 'Acme\\')) {
        require __DIR__ . '/../src/' . str_replace('\\', '/', substr($class, 5)) . '.php';
    }
});
