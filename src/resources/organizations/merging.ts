// How organizations are compared and merged.
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { addMatchKeys } from '../../kernel/resource/duplicates.ts'
import type { Merging } from '../../kernel/resource/merging.ts'
import { addressKeys, companyKeys, webKeys } from '../../kernel/values/match-keys.ts'

type Reply = Pick<Schema<'Organization'>, 'name' | 'custom_attributes'>

export const organizationMerging: Merging<{ id: number }, Reply> = {
  matchKeys: ({ name, custom_attributes }) => [
    ...companyKeys(name),
    ...Object.values((custom_attributes ?? {}) as object).flatMap(webKeys),
  ],
  matchedFields: { name: 'name', domain: 'custom_attributes' },
  // The domains of persons stay when the persons go, so they are tested.
  isMatch: ({ kind, value, own, other }) =>
    sql`(${kind} = 'name' or (${hasDomain(own, value)} and ${hasDomain(other, value)}))`,
  lists: {},
  follows: {},
  derived: [],
  refresh: async () => {},
}

const hasDomain = (id: unknown, value: unknown) => sql`(exists (select 1 from persons as member
    join person_match_keys as known on known.person_id = member.id and known.kind = 'domain' and known.value = ${value}
    where member.organization_id = ${id})
  or exists (select 1 from organizations as company where company.id = ${id}
    and cast(company.custom_attributes as text) like '%' || ${value} || '%'))`

/** Notes the domains of a person's addresses as those of the organization. */
export async function noteDomains(
  ctx: Context,
  { organization_id: id, emails }: Pick<Schema<'Person'>, 'organization_id' | 'emails'>,
): Promise<void> {
  if (id === null) return
  const keys = emails.flatMap(({ value }) => addressKeys(value)).filter(([kind]) => kind === 'domain')
  await addMatchKeys(ctx, 'organization', id, keys)
}
