// Finds the encrypted values of a database and tries to decrypt them. Backups and `accord doctor`
// use this to check the secret.
import type { Db } from '../../db/store.ts'
import type { Config } from '../config/config.ts'
import { createEncryption } from '../kernel/auth/encryption.ts'
import { configurationKeys } from '../resources/configuration/keys.ts'

/**
 * Returns the number of encrypted values and descriptions of those that cannot be decrypted.
 * Without a secret, no value can be decrypted.
 */
export async function checkEncryptedValues(
  db: Db,
  config: Config,
  secret: string | null,
): Promise<{ values: number; unreadable: string[] }> {
  const encryption = secret === null ? null : createEncryption(secret)
  const unreadable: string[] = []
  let values = 0
  for (const { where, sealed } of await listEncryptedValues(db, config)) {
    values++
    try {
      if (encryption?.decrypt(sealed) === undefined) unreadable.push(where)
    } catch {
      unreadable.push(where)
    }
  }
  return { values, unreadable }
}

async function listEncryptedValues(db: Db, config: Config): Promise<{ where: string; sealed: string }[]> {
  const tables = new Set((await db.introspection.getTables()).map(({ name }) => name))
  const webhooks = tables.has('webhooks') ? await db.selectFrom('webhooks').selectAll().orderBy('id').execute() : []
  const codes = configurationKeys(config)
    .filter(({ kind }) => kind === 'secret')
    .map(({ code }) => code as string)
  const values = tables.has('core_config')
    ? await db.selectFrom('core_config').select(['code', 'value']).where('code', 'in', codes).execute()
    : []
  return [
    // A database with pending migrations may lack some of these columns.
    ...webhooks.flatMap(({ id, secret_sealed: sealed, headers_sealed: headers, query_params_sealed: params }) => [
      ...(sealed ? [{ where: `the secret of webhook ${id}`, sealed }] : []),
      ...valuesIn(headers, `a header of webhook ${id}`),
      ...valuesIn(params, `a query parameter of webhook ${id}`),
    ]),
    ...values.map(({ code, value }) => ({ where: `the configuration ${code}`, sealed: String(JSON.parse(value)) })),
  ]
}

const valuesIn = (stored: string | undefined, where: string): { where: string; sealed: string }[] =>
  (JSON.parse(stored ?? '[]') as { sealed: string | null }[]).flatMap(({ sealed }) =>
    sealed === null ? [] : [{ where, sealed }],
  )
