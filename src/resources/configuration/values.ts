// Reads and stores configuration values and presents them. Only values that were set
// have a row; all other keys have their default. Secrets are encrypted and never shown.
import type { Schema } from '../../contract/types.ts'
import { DecryptionError } from '../../kernel/auth/encryption.ts'
import { type Context, now } from '../../kernel/context.ts'
import { fileRefs } from '../files/attach.ts'
import { type ConfigurationKey, configurationKeys } from './keys.ts'

type Entry = Schema<'ConfigurationEntry'>

/** Returns the stored values by code. Secrets are still encrypted. */
export async function storedValues(ctx: Context): Promise<Map<string, unknown>> {
  const rows = await ctx.db.selectFrom('core_config').select(['code', 'value']).execute()
  return new Map(rows.map(({ code, value }) => [code, JSON.parse(value) as unknown]))
}

export async function entriesOf(ctx: Context): Promise<Entry[]> {
  const stored = await storedValues(ctx)
  const keys = configurationKeys(ctx.services.config)
  const fileIds = keys.filter(({ kind }) => kind === 'file').flatMap(({ code }) => (stored.get(code) as number) ?? [])
  const files = await fileRefs(ctx, fileIds)
  return keys.map(({ code, kind, initial }): Entry => {
    const isSet = stored.has(code)
    const value = isSet ? stored.get(code) : initial
    return {
      code,
      value: kind === 'secret' ? null : kind === 'file' ? (files.get(value as number) ?? null) : value,
      type: kind,
      default: kind === 'secret' ? null : initial,
      is_set: isSet,
      is_secret: kind === 'secret',
    }
  })
}

/** Stores a value. Null deletes the stored value, so that the default applies again. */
export async function storeConfigurationValue(
  ctx: Context,
  { code, kind }: Pick<ConfigurationKey, 'code' | 'kind'>,
  value: unknown,
): Promise<void> {
  if (value === null) {
    await ctx.db.deleteFrom('core_config').where('code', '=', code).execute()
    return
  }
  const at = now(ctx)
  const text = JSON.stringify(kind === 'secret' ? ctx.services.encryption.encrypt(String(value)) : value)
  await ctx.db
    .insertInto('core_config')
    .values({ code, value: text, created_at: at, updated_at: at })
    .onConflict((conflict) => conflict.column('code').doUpdateSet({ value: text, updated_at: at }))
    .execute()
}

/**
 * Returns whether this secret is already stored. A stored secret that cannot be decrypted never
 * matches.
 */
export async function isStoredSecret(ctx: Context, code: string, value: unknown): Promise<boolean> {
  try {
    return (await readSecret(ctx, code)) === value
  } catch (error) {
    if (error instanceof DecryptionError) return false
    throw error
  }
}

/**
 * Returns a secret in clear text, or null when it is not set. The clear text must not reach a reply
 * or the log.
 */
export async function readSecret(ctx: Context, code: string): Promise<string | null> {
  const sealed = (await storedValues(ctx)).get(code)
  return typeof sealed === 'string' ? ctx.services.encryption.decrypt(sealed) : null
}
