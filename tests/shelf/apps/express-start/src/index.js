const express = require('express');

const app = express();
app.disable('x-powered-by');
app.use(express.json());
app.get('/', (request, response) => response.json([{ id: 1, done: false }]));
app.listen(process.env.PORT || 3000);
