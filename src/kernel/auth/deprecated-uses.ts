// Records which token last used which deprecated part of the contract, so that an operator knows
// before an upgrade which integration would break.
import type { Call } from '../../contract/call.ts'
import type { Context, Services } from '../context.ts'
import { stamp } from '../runtime/clock.ts'
import { perOwner } from '../runtime/per-owner.ts'
import { writeAside } from '../runtime/unavailable.ts'

/** The names of the uses that were recorded on a day, so that each is written once a day. */
const recorded = perOwner((_services: Services) => ({ day: '', names: new Set<string>() }))

/** Starts to record the uses of a call by its token. Does not wait for the write. */
export function noteDeprecatedUses(
  services: Services,
  { operation, uses }: Pick<Call, 'operation' | 'uses'>,
  token: Context['token'],
): void {
  if (!token) return
  const at = stamp(services.clock.now())
  const known = recorded(services)
  if (known.day !== at.slice(0, 10)) Object.assign(known, { day: at.slice(0, 10), names: new Set() })
  for (const use of uses) {
    const name = `${operation} ${use.name}`.trim().slice(0, 255)
    const key = `deprecated use ${token.id} ${name}`
    if (known.names.has(key)) continue
    known.names.add(key)
    const row = { token_id: token.id, name, sunset: use.sunset, last_used_at: at }
    const write = services.store.db
      .insertInto('deprecated_uses')
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(['token_id', 'name']).doUpdateSet({ sunset: use.sunset, last_used_at: at }),
      )
    writeAside(services, key, () => write.execute())
  }
}

/** Returns the deprecated parts that a token has used, in the order of their sunset. */
export const deprecatedUsesOf = ({ db }: Pick<Context, 'db'>, tokenId: number) =>
  db
    .selectFrom('deprecated_uses')
    .select(['name', 'sunset', 'last_used_at'])
    .where('token_id', '=', tokenId)
    .orderBy('sunset')
    .orderBy('name')
    .execute()
