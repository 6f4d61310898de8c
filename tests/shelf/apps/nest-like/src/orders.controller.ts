import { Get } from './router';

export class OrdersController {
  @Get('/')
  all(): { orders: number[] } {
    return { orders: [101, 102] };
  }
}
