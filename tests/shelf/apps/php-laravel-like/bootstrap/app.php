<?php
$database = new PDO('sqlite::memory:');
$database->exec('create table posts (title text)');
$database->exec("insert into posts values ('Hello from the kernel')");
return $database;
