<?php
const BUILD = __DIR__ . '/../build';
