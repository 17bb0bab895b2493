// Inserts many products directly into the table, which is faster than the API.
import { sql } from 'kysely'
import type { Db } from '../../db/store.ts'
import { start } from './app.ts'

export const addProducts = (db: Db, count: number, description: string) =>
  sql`
    insert into products (sku, sku_key, name, name_key, description, price, created_at, updated_at)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
    select 'S-' || n, 's-' || n, 'Product ' || n, 'product ' || n, ${description}, n * 10000, ${start}, ${start} from numbers
  `.execute(db)
