// The sender of e-mails to customers: the installation, or the owner where the configuration allows
// it. Mail servers accept the address of an owner only in the domain of the installation (SPF,
// DKIM), so an owner with another domain has only the name.
import type { Context } from '../../kernel/context.ts'
import type { ConfigurationCode } from '../configuration/keys.ts'
import { storedValues } from '../configuration/values.ts'

export interface Sender {
  address: string
  name: string
  /** Whether the sender is the owner, so that replies need the address of the installation. */
  isOwner: boolean
}

/** Returns the sender of an e-mail of this user, or of the installation. */
export async function senderOf(ctx: Context, userId: number | null): Promise<Sender> {
  const { mailFrom, mailFromName } = ctx.services.config
  const installation = { address: mailFrom, name: mailFromName, isOwner: false }
  if (userId === null) return installation
  if ((await storedValues(ctx)).get('email.from_owner' satisfies ConfigurationCode) !== true) return installation
  const active = ctx.db.selectFrom('users').select(['name', 'email']).where('is_active', '=', 1)
  const owner = await active.where('id', '=', userId).executeTakeFirst()
  if (!owner) return installation
  const isOfDomain = domainOf(owner.email) === domainOf(mailFrom)
  return { address: isOfDomain ? owner.email : mailFrom, name: owner.name, isOwner: true }
}

const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1).toLowerCase()

/** Returns the owner of the lead, or else of the person, that an e-mail is about. */
export async function ownerOf(
  { db }: Context,
  { lead_id, person_id }: { lead_id: number | null; person_id: number | null },
): Promise<number | null> {
  for (const [table, id] of [
    ['leads', lead_id],
    ['persons', person_id],
  ] as const) {
    const row =
      id === null ? undefined : await db.selectFrom(table).select('user_id').where('id', '=', id).executeTakeFirst()
    if (row?.user_id != null) return row.user_id
  }
  return null
}
