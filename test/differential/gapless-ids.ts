// Makes PostgreSQL generate the same ids as SQLite. SQLite reuses an id after a rollback, a
// sequence does not. A trigger replaces each generated id by the next number from a table, which a
// rollback resets. Replies, links and events can then be compared directly. test/support/hostile.ts
// tests ids with gaps.
import { sql } from 'kysely'
import type { Store } from '../../db/store.ts'

/** Sequences start here, so that the trigger can recognize generated ids. */
const generatedFrom = 2 ** 40

const setUp = [
  'drop table if exists last_ids',
  'create unlogged table last_ids (name text primary key, last bigint not null)',
  `create or replace function give_gapless_id() returns trigger language plpgsql as $$
  begin
    if new.id >= ${generatedFrom} then
      update last_ids set last = last + 1 where name = tg_table_name returning last into new.id;
    else
      update last_ids set last = greatest(last, new.id) where name = tg_table_name;
    end if;
    return new;
  end $$`,
  `do $$
  declare each record; number regclass; begin
    for each in
      select relname from pg_class join pg_attribute on attrelid = pg_class.oid
      where relnamespace = 'public'::regnamespace and relkind = 'r' and attname = 'id' and attidentity <> ''
    loop
      number := pg_get_serial_sequence(each.relname, 'id');
      insert into last_ids values (each.relname, coalesce(pg_sequence_last_value(number), 0));
      execute format('create or replace trigger give_gapless_id before insert on %I
        for each row execute function give_gapless_id()', each.relname);
      perform setval(number, ${generatedFrom});
    end loop;
  end $$`,
]

export async function giveGaplessIds(store: Store): Promise<void> {
  await store.transaction(async (db) => {
    for (const statement of setUp) await sql.raw(statement).execute(db)
  })
}
