// The configuration of webhooks. jobs.ts sends their deliveries.
import { randomBytes } from 'node:crypto'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { flagField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { upsertHandler } from '../../kernel/resource/external-ids.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { daysAfter } from '../../kernel/runtime/clock.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { referencesInText } from '../email-templates/placeholder-references.ts'
import { changerColumns, requireWebhookAbilities, silentReason } from '../system/webhook-rights.ts'
import { changedById } from '../users/acting-user.ts'
import { userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { requestTemplateOf } from './request.ts'
import { checkPlaceholders, checkRules, maxPairs, readPayload, withEmptyValues } from './rules.ts'
import { splitQuery } from './url-query.ts'
import { encryptChanges, maskInput, maskValues, mergeQueryValues } from './write-only-values.ts'

type Webhook = Schema<'Webhook'>
type Body = Schema<'WebhookUpdate'>

const maxWebhooks = 50
const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`
const asText = (sent: unknown): string | undefined => (sent === undefined ? undefined : JSON.stringify(sent))

export const webhooks = defineResource({
  noun: 'webhook',
  table: 'webhooks',
  externalIds: { table: 'webhook_external_ids', column: 'webhook_id' },
  operations: {
    list: 'listWebhooks',
    get: 'getWebhook',
    create: 'createWebhook',
    update: 'updateWebhook',
    delete: 'deleteWebhook',
  },
  rows: (_ctx, db) =>
    db
      .selectFrom('webhooks')
      .leftJoin('users', 'users.id', 'webhooks.changed_by_id')
      .leftJoin('roles', 'roles.id', 'users.role_id')
      .selectAll('webhooks')
      .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image'])
      .select(changerColumns),
  sort: { id: 'webhooks.id', name: 'webhooks.name_key', created_at: 'webhooks.created_at' },
  filter: {
    name: textField('webhooks.name_key'),
    entity_type: valueField('webhooks.entity_type'),
    is_active: flagField('webhooks.is_active'),
  },
  search: [{ key: 'webhooks.name_key' }, { text: 'webhooks.url' }, { text: 'webhooks.description' }],
  governs: ['payload_type', 'raw_payload_type'],
  withoutColumn: { headers: 'other columns', query_params: 'other columns' },
  toRow: async (body: Body, writing) => {
    const { ctx, current } = writing
    checkRules(writing, body)
    await checkPlaceholders(writing, body)
    const name = await uniqueName(writing, { table: 'webhooks', entity: 'webhooks', noun: 'webhook' }, body.name)
    if (!current) await refuseTooMany(ctx)
    const { payload } = body
    const isSwitchedOn = body.is_active === true && current?.is_active === 0
    const columns = {
      ...name,
      entity_type: body.entity_type,
      description: body.description,
      method: body.method,
      ...requestColumns(writing, body),
      payload_type: body.payload_type,
      raw_payload_type: body.raw_payload_type,
      payload: payload === null ? null : asText(Array.isArray(payload) ? withEmptyValues(payload) : payload),
      events: asText(body.events),
      changed: asText(body.changed),
      is_active: body.is_active === undefined ? undefined : Number(body.is_active),
      // Switching a webhook on clears its failure.
      ...(body.is_active === true && { disabled_reason: null, failing_since: null }),
      // A webhook sends only events that occur after its creation or its last activation.
      ...((!current || isSwitchedOn) && { events_after: await newestEvent(ctx) }),
      ...(!current && { secret_sealed: ctx.services.encryption.encrypt(newSecret()) }),
    }
    const changer = changedById(ctx, columns, current)
    if (changer !== undefined && !writing.errors.any)
      requireWebhookAbilities(ctx, {
        entity_type: body.entity_type === undefined ? (current?.entity_type ?? null) : body.entity_type,
        events: columns.events ?? current?.events ?? '[]',
      })
    return { columns: { ...columns, changed_by_id: changer } }
  },
  maskInput: (body) => ({
    ...body,
    ...(body.url !== undefined && { url: splitQuery(body.url).address }),
    ...(body.headers && { headers: maskInput(body.headers) }),
    ...(body.query_params && { query_params: maskInput(body.query_params) }),
  }),
  toReply: (row, ctx): Webhook => ({
    id: row.id,
    name: row.name,
    entity_type: row.entity_type as Webhook['entity_type'],
    description: row.description,
    method: row.method as Webhook['method'],
    url: row.url,
    query_params: maskValues(row.query_params_sealed),
    headers: maskValues(row.headers_sealed),
    payload_type: row.payload_type as Webhook['payload_type'],
    raw_payload_type: row.raw_payload_type as Webhook['raw_payload_type'],
    payload: readPayload(row.payload),
    events: JSON.parse(row.events) as string[],
    changed: JSON.parse(row.changed) as string[],
    is_active: row.is_active === 1,
    disabled_reason: row.disabled_reason,
    silent_reason: silentReason(ctx.services.sights, row),
    last_status: row.last_status,
    failing_since: row.failing_since,
    changed_by: userRef(row.changed_by_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  refersTo: async (ctx, row) => {
    const { url, query_params, headers } = requestTemplateOf(row, ctx.services.encryption)
    const texts = [
      ['url', url],
      ['payload', row.payload ?? ''],
      ...query_params.map(({ value }) => ['query_params', value ?? ''] as const),
      ...headers.map(({ value }) => ['headers', value ?? ''] as const),
    ] as const
    return (await Promise.all(texts.map(([field, text]) => referencesInText(ctx, field, text)))).flat()
  },
})

interface Current {
  url: string
  query_params_sealed: string
  headers_sealed: string
}

/**
 * Returns the columns of the address, query parameters and headers. Stored values are never kept
 * for a new address, because otherwise a user who may edit a webhook could send stored secrets to
 * their own server.
 */
function requestColumns({ ctx, current, errors }: Writing<Current>, { url, query_params, headers }: Body) {
  const { encryption } = ctx.services
  const { address, query } = url === undefined ? { address: undefined, query: [] } : splitQuery(url)
  const isMoved = current !== null && address !== undefined && address !== current.url
  const about = { isMoved, encryption, errors }
  const stored = current?.query_params_sealed ?? '[]'
  const sealed = encryptChanges({ ...about, field: 'query_params', sent: query_params, stored, nameOf: (key) => key })
  const params = query.length === 0 ? sealed : mergeQueryValues(sealed ?? stored, query, encryption)
  if (query.some(({ key }) => key === '')) errors.invalid('url', 'Every parameter of the query needs a name.')
  if (params !== undefined && query.length > 0 && maskValues(params).length > maxPairs)
    errors.invalid('url', `With query_params there must not be more than ${maxPairs} parameters.`)
  return {
    url: address,
    query_params_sealed: params,
    headers_sealed: encryptChanges({
      ...about,
      field: 'headers',
      sent: headers,
      stored: current?.headers_sealed ?? '[]',
      nameOf: (key) => key.toLowerCase(),
    }),
  }
}

async function refuseTooMany(ctx: Context): Promise<void> {
  const { count } = await ctx.db
    .selectFrom('webhooks')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) >= maxWebhooks)
    throw new Problem('state_conflict', `An installation has at most ${maxWebhooks} webhooks.`)
}

/**
 * Returns the webhook with its signing secret. The API shows this secret only when it creates the
 * secret.
 */
async function withSecret(ctx: Context, webhook: Webhook): Promise<Schema<'WebhookWithSecret'>> {
  const row = await ctx.db
    .selectFrom('webhooks')
    .select('secret_sealed')
    .where('id', '=', webhook.id)
    .executeTakeFirstOrThrow()
  return { ...webhook, secret: ctx.services.encryption.decrypt(row.secret_sealed) }
}

const createWebhook: Handler<'createWebhook'> = (ctx, { body }) =>
  transaction(ctx, async (ctx) => ({
    data: await withSecret(ctx, await webhooks.create(ctx, body)),
    message: 'Webhook created.',
  }))

const upsertWebhook: Handler<'upsertWebhook'> = upsertHandler(webhooks, {
  create: 'createWebhook',
  update: 'updateWebhook',
  creating: createWebhook,
  updating: webhooks.handlers.updateWebhook,
})

/**
 * Replaces the signing secret of a webhook. For one day requests are also signed with the old
 * secret, so that receivers have time to switch.
 */
const rotateWebhookSecret: Handler<'rotateWebhookSecret'> = (ctx, { params: { id } }) =>
  transaction(ctx, async (ctx) => {
    await webhooks.assertVisible(ctx, id)
    const before = await webhooks.get(ctx, id)
    requireWebhookAbilities(ctx, { entity_type: before.entity_type, events: JSON.stringify(before.events) })
    await write(ctx, 'settings.webhook.update', { entity: 'webhooks', input: {}, id, before }, async (ctx) => {
      await ctx.db
        .updateTable('webhooks')
        .set((eb) => ({
          previous_secret_sealed: eb.ref('secret_sealed'),
          previous_secret_until: daysAfter(ctx.time, 1),
          secret_sealed: ctx.services.encryption.encrypt(newSecret()),
          ...(ctx.user && { changed_by_id: ctx.user.id }),
        }))
        .where('id', '=', id)
        .execute()
      await webhooks.touch(ctx, id)
      return { id, entity: await webhooks.get(ctx, id), hidden: ['secret'] }
    })
    return { data: await withSecret(ctx, await webhooks.get(ctx, id)), message: 'Webhook secret rotated.' }
  })

export const handlers = { createWebhook, upsertWebhook, rotateWebhookSecret } satisfies Partial<Handlers>
