// Handlers that read and save the configuration. The configuration is one record
// without an id, and each save emits one pair of events.
import { isDeepStrictEqual } from 'node:util'
import { bodyReader } from '../../contract/input/body-reader.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { Body, Schema } from '../../contract/types.ts'
import { mask } from '../../kernel/auth/encryption.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { historyPage } from '../../kernel/history/history.ts'
import type { Sight } from '../../kernel/query/event-visibility.ts'
import { clean, tooMuch } from '../../kernel/values/html.ts'
import { byteTag, checkTag, withTag } from '../../kernel/write/etag.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { canonicalTag } from '../../texts/tags.ts'
import { acceptFileRef, attachFile, checkFileReference, releaseFiles } from '../files/attach.ts'
import { type ConfigurationKey, configurationKeys, fileLimits } from './keys.ts'
import { type Connection, isSameConnection, mailboxConnection, passwordCode } from './mailbox.ts'
import { entriesOf, isStoredSecret, storeConfigurationValue, storedValues } from './values.ts'

const entity = 'configuration'
/** The record that owns the logo file. The configuration has no id, so the owner has id 1. */
const owner = { type: entity, id: 1 }

/** Makes configuration events visible to callers who may read the configuration. */
export const configurationSight: Sight = { lists: operations.getConfiguration, records: null }

type Values = Schema<'ConfigurationValues'>

const saveConfiguration: Handler<'saveConfiguration'> = (ctx, { body }) =>
  transaction(ctx, async (ctx) => {
    if (ctx.ifMatch !== null) checkTag(ctx, await tagOf(ctx, await entriesOf(ctx)))
    const values = await valuesOf(ctx, body)
    const sent = await checkValues(ctx, values)
    const input = { values: Object.fromEntries(sent.map(([key, value]) => [key.code, masked(key, value)])) }
    const before = await snapshotOf(ctx)
    const connection = mailboxConnection(ctx.services.config, await storedValues(ctx))
    let isForgotten = false
    await write(ctx, 'core.configuration.save', { entity, input, before }, async (ctx) => {
      const hidden: string[] = []
      for (const [key, value] of sent) {
        if (key.kind === 'secret') {
          if (await isStoredSecret(ctx, key.code, value)) continue
          hidden.push(key.code)
        }
        await storeConfigurationValue(
          ctx,
          key,
          key.kind === 'file' ? await attachLogo(ctx, key, value as number | null) : value,
        )
      }
      isForgotten = await forgetPassword(ctx, connection, values)
      return { id: null, entity: await snapshotOf(ctx), hidden }
    })
    const forgotten = isForgotten ? ' The password of the mailbox was removed, because its connection changed.' : ''
    const data = await entriesOf(ctx)
    return withTag({ data, message: `Configuration saved.${forgotten}` }, await tagOf(ctx, data))
  })

/**
 * Returns the values to save. Entries of `data` count where they differ from what GET shows. Throws
 * 422 for a body with neither key, and for invalid values of entries.
 */
async function valuesOf(ctx: Context, { values, data }: Body<'saveConfiguration'>): Promise<Values> {
  if (data === undefined) {
    if (values === undefined) throw invalid({ values: ['The field is required.'] })
    return values
  }
  const shown = new Map((await entriesOf(ctx)).map(({ code, value }) => [code, value]))
  const changed = data.filter(({ code, value }) => !isDeepStrictEqual(shown.get(code) ?? null, value ?? null))
  const { config, contract } = ctx.services
  const reading = { zone: config.timezone, strict: config.strict }
  const sent = { values: { ...Object.fromEntries(changed.map(({ code, value }) => [code, value])), ...values } }
  const read = bodyReader(contract, 'saveConfiguration')(sent, reading)
  if (Object.keys(read.errors).length > 0) throw invalid(read.errors)
  return (read.value as { values: Values }).values
}

/**
 * Removes the mailbox password when the connection changes, unless the same save sets a new
 * password. The stored password must never be sent to another server. Returns whether it removed
 * the password.
 */
async function forgetPassword(ctx: Context, before: Connection, sent: Values): Promise<boolean> {
  const stored = await storedValues(ctx)
  if (Object.hasOwn(sent, passwordCode) || !stored.has(passwordCode)) return false
  if (isSameConnection(before, mailboxConnection(ctx.services.config, stored))) return false
  await storeConfigurationValue(ctx, { code: passwordCode, kind: 'secret' }, null)
  return true
}

/**
 * Returns the sent values in their stored form. Throws 422 for errors that the contract cannot
 * express.
 */
async function checkValues(ctx: Context, values: Values): Promise<[ConfigurationKey, unknown][]> {
  const errors = new ValidationErrors()
  const sent: [ConfigurationKey, unknown][] = []
  for (const key of configurationKeys(ctx.services.config)) {
    if (!Object.hasOwn(values, key.code)) continue
    const value = values[key.code]
    const field = `values.${key.code}`
    if (key.kind === 'locale' && typeof value === 'string' && canonicalTag(value) === null)
      errors.invalid(field, 'Must be a BCP 47 language tag such as en or de-AT.')
    if (key.kind === 'file') {
      const id = acceptFileRef(value as number | { id: number } | null)
      await checkFileReference({ ctx, errors }, field, id, fileLimits[key.code])
      sent.push([key, id])
    } else if (key.kind === 'html' && typeof value === 'string') {
      const cleaned = clean(value)
      if (cleaned === null) errors.invalid(field, tooMuch)
      sent.push([key, cleaned])
    } else sent.push([key, value])
  }
  errors.throwIfAny()
  return sent
}

/** Attaches a new logo and deletes the file of the old one. Returns the id of the attached file. */
async function attachLogo(ctx: Context, { code }: ConfigurationKey, id: number | null): Promise<number | null> {
  const old = (await storedValues(ctx)).get(code)
  if (old === id) return id
  const placed = id === null ? null : await attachFile(ctx, id, owner)
  if (typeof old === 'number') await releaseFiles(ctx, owner, [old])
  return placed
}

const masked = ({ kind }: ConfigurationKey, value: unknown): unknown =>
  kind === 'secret' && value !== null ? mask : value

/**
 * Returns the ETag of the configuration. The ETag also covers secrets, which replies do not
 * contain, so that a changed secret changes the ETag.
 */
async function tagOf(ctx: Context, entries: Awaited<ReturnType<typeof entriesOf>>): Promise<string> {
  const stored = await storedValues(ctx)
  const secrets = entries.map(({ code, is_secret }) => (is_secret ? stored.get(code) : null))
  return byteTag(JSON.stringify([entries, secrets]))
}

/** Returns all values by key, for the event log. A secret appears only as a mask or null. */
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
