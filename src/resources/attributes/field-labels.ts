// The names of an entity's fields for people: those of its attributes.
import type { Context } from '../../kernel/context.ts'

/** Names by code. */
export async function fieldLabels({ db }: Context, entity: string): Promise<ReadonlyMap<string, string>> {
  const rows = await db.selectFrom('attributes').select(['code', 'name']).where('entity_type', '=', entity).execute()
  return new Map(rows.map(({ code, name }) => [code, name]))
}
