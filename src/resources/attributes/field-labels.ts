// Provides readable names for an entity's fields.
import { sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'

export async function fieldLabels({ db }: Context, entity: string): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('attributes')
    .select(['code', 'name'])
    .where(sql.ref('entity_type'), '=', entity)
    .execute()
  return new Map(rows.map(({ code, name }) => [code, name]))
}
