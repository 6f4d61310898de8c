const express = require('express');

const app = express();
app.get('/', (req, res) => res.json({ hello: 'world' }));
app.listen(process.env.PORT || 3000, process.env.HOST || '127.0.0.1');
