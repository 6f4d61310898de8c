// Catalogue of a shop.
const path = require('path');
const express = require('express');

const app = express();
app.set('view engine', 'ejs');
app.set('views', path.join(__dirname, 'views'));

const goods = Array.from({ length: 24 }, (_, number) => ({
  name: `Lamp no. ${number}`, price: 1990 + 10 * number, stock: number % 7, tags: ['light', 'home', 'new'],
}));
app.get('/', (req, res) => res.render('catalogue', { title: 'Lamps', goods, customer: 'Ada' }));
app.listen(process.env.PORT || 3000, '127.0.0.1');
