const Koa = require('koa');

const app = new Koa();
app.use(async (context) => { context.body = 'first post\n'; });
app.listen(process.env.PORT || 8080);
