// Organizations: companies and institutions. The handlers that list an organization's
// persons and leads are in persons/ and leads/.

import { type SqlBool, sql } from 'kysely'
import type { Dialect } from '../../../db/dialect.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { Handlers } from '../../kernel/handler.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import {
  conditionField,
  importedField,
  likePattern,
  linkedField,
  textField,
  valueField,
} from '../../kernel/query/filter.ts'
import { idsInSight, visible, visibleOwner } from '../../kernel/query/visibility.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { exportOf } from '../../kernel/resource/export.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { expandReferences, unique } from '../../kernel/resource/references.ts'
import { addressParts, mergeAddress, readAddress } from '../../kernel/values/address.ts'
import { foldedKeyRange, foldedPartOf, inFoldedKeyRange, textKey } from '../../kernel/values/names.ts'
import { withAttributes } from '../attributes/with-attributes.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { checkTagIds, readTags, setTags, tagsIn } from '../tags/tag-links.ts'
import { resolveOwnerId, userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { users } from '../users/resource.ts'
import { organizationColumns } from './columns.ts'
import { organizationMerging } from './merging.ts'
import { searchDocument } from './search-document.ts'

export const organizations = defineResource(
  withAttributes('organizations', {
    noun: 'organization',
    table: 'organizations',
    externalIds: {
      table: 'organization_external_ids',
      column: 'organization_id',
      former: 'organization_former_ids',
    },
    merging: organizationMerging,
    namedBy: { keys: { name: nameKey } },
    operations: {
      list: 'listOrganizations',
      get: 'getOrganization',
      create: 'createOrganization',
      update: 'updateOrganization',
      delete: 'deleteOrganization',
    },
    rows: (ctx, db) =>
      db
        .selectFrom('organizations')
        .leftJoin('users', 'users.id', 'organizations.user_id')
        .selectAll('organizations')
        .select(tagsIn(ctx, db, 'organizations'))
        .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image'])
        .select([personsCount(ctx), leadsCount(ctx)])
        .where(visible(ctx, 'organizations.user_id')),
    idsInSight: (caller) => idsInSight(caller, 'organizations'),
    sort: {
      id: 'organizations.id',
      name: 'organizations.name_key',
      created_at: 'organizations.created_at',
      updated_at: 'organizations.updated_at',
    },
    filter: {
      name: textField('organizations.name_key'),
      user_id: valueField('organizations.user_id'),
      country: (ctx) =>
        conditionField((wanted) => {
          const country = ctx.services.store.dialect.jsonText('organizations.address', 'country')
          // A missing country counts as an empty text, because SQL would exclude NULL from the
          // negated filter `country[not]`.
          return sql<SqlBool>`coalesce(${country}, '') in (${sql.join(wanted.map((each) => String(each).toUpperCase()))})`
        }),
      tag_id: linkedField('organization_tags', 'organizations.id', 'organization_id', 'tag_id'),
      import_id: importedField('organizations', 'organization'),
    },
    searchDocument,
    search: [
      { indexed: 'organizations' },
      { key: 'organizations.name_key' },
      ...addressParts.map((part) => ({
        where: (word: string, dialect: Dialect) =>
          sql<SqlBool>`${dialect.searchFold(dialect.jsonText('organizations.address', part))} like ${likePattern(word)} escape '\\'`,
      })),
    ],
    withoutColumn: { tag_ids: 'links' },
    toRow: async ({ name, address, user_id, tag_ids }, writing) => {
      const { ctx, current, errors } = writing
      const key = name === undefined ? undefined : textKey(name)
      await unique(writing, {
        field: 'name',
        table: 'organizations',
        column: 'name_key',
        key,
        entity: 'organizations',
        except: current?.id ?? null,
        noun: 'organization',
        owner: 'user_id',
      })
      await checkTagIds(ctx, errors, tag_ids)
      return {
        columns: {
          name,
          name_key: key,
          address: mergeAddress(current?.address ?? null, address),
          user_id: await resolveOwnerId(writing, user_id),
        },
      }
    },
    toReply: (row, ctx): Schema<'Organization'> => ({
      id: row.id,
      name: row.name,
      address: readAddress(row.address),
      user_id: row.user_id,
      user: userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
      tags: readTags(row.tags),
      persons_count: Number(row.persons_count),
      leads_count: Number(row.leads_count),
      custom_attributes: {},
      external_ids: {},
      created_at: row.created_at,
      updated_at: row.updated_at,
      version: row.version,
    }),
    loadRelated: async (ctx, replies, include) => {
      await expandReferences(ctx, replies, include, { user: () => users })
    },
    saveLinks: (ctx, id, { tag_ids }, isNew) => setTags(ctx, 'organizations', id, tag_ids, isNew),
  }),
)

const personsCount = (ctx: SqlCaller) =>
  sql<number>`(select count(*) from persons where persons.organization_id = organizations.id and ${visible(ctx, 'persons.user_id')})`.as(
    'persons_count',
  )

/** The owner is an expression, so that SQLite does not read all leads of the caller. */
const leadsCount = (ctx: SqlCaller) =>
  sql<number>`(select count(*) from leads join persons on persons.id = leads.person_id where persons.organization_id = organizations.id and ${visibleOwner(ctx, sql`(leads.user_id + 0)`, true)})`.as(
    'leads_count',
  )

const tags = createTagHandlers('organizations', organizations)

export const handlers = {
  exportOrganizations: exportOf(organizations, organizationColumns),
  listOrganizationTags: tags.list,
  attachOrganizationTag: tags.attach,
  detachOrganizationTag: tags.detach,
} satisfies Partial<Handlers>

/**
 * Returns the organization whose name has this key, or else those whose names differ in accents or
 * blanks. Checks no visibility, because names are unique among all organizations.
 */
export async function organizationsLike(
  { db }: Pick<Context, 'db'>,
  key: string,
): Promise<{ id: number; name_key: string }[]> {
  const found = await db
    .selectFrom('organizations')
    .select(['id', 'name_key'])
    .where(inFoldedKeyRange('name_key', foldedKeyRange(foldedPartOf(key))))
    .execute()
  const exact = found.filter(({ name_key }) => name_key === key)
  return exact.length > 0 ? exact : found
}
