// Reading and saving the configuration (DOMAIN 15.5): one record without an id, with one event for all keys of a save.
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { mask } from '../../kernel/auth/encryption.ts'
import type { Context } from '../../kernel/context.ts'
import { ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { historyPage } from '../../kernel/history/history.ts'
import type { Sight } from '../../kernel/query/event-visibility.ts'
import { clean, tooMuch } from '../../kernel/values/html.ts'
import { checkTag, textTag, withTag } from '../../kernel/write/etag.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { acceptFileRef, attachFile, referFile, releaseFiles } from '../files/attach.ts'
import { fileLimits, type Key, keysOf } from './keys.ts'
import { type Connection, connectionOf, isSameConnection, passwordCode } from './mailbox.ts'
import { entriesOf, isStored, store, storedValues } from './values.ts'

const entity = 'configuration'
/** A logo belongs to the configuration, which is one record without an id of its own. */
const owner = { type: entity, id: 1 }

/** Changes are shown to callers who may read the configuration. */
export const configurationSight: Sight = { lists: operations.getConfiguration, records: null }

type Values = Schema<'ConfigurationValues'>

const saveConfiguration: Handler<'saveConfiguration'> = (ctx, { body }) =>
  transaction(ctx, async (ctx) => {
    if (ctx.ifMatch !== null) checkTag(ctx, await tagOf(ctx, await entriesOf(ctx)))
    const sent = await checked(ctx, body.values)
    const input = { values: Object.fromEntries(sent.map(([key, value]) => [key.code, masked(key, value)])) }
    const before = await snapshotOf(ctx)
    const connection = connectionOf(ctx.services.config, await storedValues(ctx))
    let isForgotten = false
    await write(ctx, 'core.configuration.save', { entity, input, before }, async (ctx) => {
      const hidden: string[] = []
      for (const [key, value] of sent) {
        if (key.kind === 'secret') {
          if (await isStored(ctx, key.code, value)) continue
          hidden.push(key.code)
        }
        await store(ctx, key, key.kind === 'file' ? await placeLogo(ctx, key, value as number | null) : value)
      }
      isForgotten = await forgetPassword(ctx, connection, body.values)
      return { id: null, entity: await snapshotOf(ctx), hidden }
    })
    const forgotten = isForgotten ? ' The password of the mailbox was removed, because its connection changed.' : ''
    const data = await entriesOf(ctx)
    return withTag({ data, message: `Configuration saved.${forgotten}` }, await tagOf(ctx, data))
  })

/** A stored password is good for the connection it was set for. It goes with a change, unless it is sent along. */
async function forgetPassword(ctx: Context, before: Connection, sent: Values): Promise<boolean> {
  const stored = await storedValues(ctx)
  if (Object.hasOwn(sent, passwordCode) || !stored.has(passwordCode)) return false
  if (isSameConnection(before, connectionOf(ctx.services.config, stored))) return false
  await store(ctx, { code: passwordCode, kind: 'secret' }, null)
  return true
}

/** What was sent, key by key, as it is to be stored. Throws 422 for what the contract cannot say. */
async function checked(ctx: Context, values: Values): Promise<[Key, unknown][]> {
  const found = new ValidationErrors()
  const sent: [Key, unknown][] = []
  for (const key of keysOf(ctx.services.config)) {
    if (!Object.hasOwn(values, key.code)) continue
    const value = values[key.code]
    const field = `values.${key.code}`
    if (key.kind === 'locale' && typeof value === 'string' && !isLocale(value))
      found.invalid(field, 'Must be a BCP 47 language tag such as en or de-AT.')
    if (key.kind === 'file') {
      const id = acceptFileRef(value as number | { id: number } | null)
      await referFile({ ctx, found }, field, id, fileLimits[key.code])
      sent.push([key, id])
    } else if (key.kind === 'html' && typeof value === 'string') {
      const cleaned = clean(value)
      if (cleaned === null) found.invalid(field, tooMuch)
      sent.push([key, cleaned])
    } else sent.push([key, value])
  }
  found.throwIfAny()
  return sent
}

function isLocale(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}

/** A new logo takes the place of the old one, whose file goes. */
async function placeLogo(ctx: Context, { code }: Key, id: number | null): Promise<number | null> {
  const old = (await storedValues(ctx)).get(code)
  if (old === id) return id
  const placed = id === null ? null : await attachFile(ctx, id, owner)
  if (typeof old === 'number') await releaseFiles(ctx, owner, [old])
  return placed
}

const masked = ({ kind }: Key, value: unknown): unknown => (kind === 'secret' && value !== null ? mask : value)

/** Of all that is shown, and of the secrets, which are not: who changes one changes the configuration. */
async function tagOf(ctx: Context, entries: Awaited<ReturnType<typeof entriesOf>>): Promise<string> {
  const stored = await storedValues(ctx)
  const secrets = entries.map(({ code, is_secret }) => (is_secret ? stored.get(code) : null))
  return textTag(JSON.stringify([entries, secrets]))
}

/** For the event log: values by key. A secret is only told from none. */
async function snapshotOf(ctx: Context): Promise<Snapshot> {
  const entries = await entriesOf(ctx)
  return Object.fromEntries(
    entries.map(({ code, value, is_secret, is_set }) => [code, is_secret ? (is_set ? mask : null) : value]),
  )
}

export const handlers = {
  async getConfiguration(ctx) {
    const data = await entriesOf(ctx)
    return withTag({ data }, await tagOf(ctx, data))
  },
  saveConfiguration,
  listConfigurationHistory: (ctx, { query }) => historyPage(ctx, entity, null, query),
} satisfies Partial<Handlers>
