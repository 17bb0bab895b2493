// The callers who see events of a record, by its type.
import { facts } from '../support/schema.ts'
import { type Owner, sees, type View } from './matrix.scope.ts'

interface Case {
  /** The operation whose permission and ability are required. */
  list: string
  /** Whether a view shows a record of the owner, and whether it shows a deleted record. */
  seen: (view: View, owner: Owner) => boolean
  gone: (view: View, owner: Owner) => boolean
}

const byAll = () => true
const byUnlimited = (view: View): boolean => view === 'global'
const owned = (list: string): Case => ({ list, seen: sees, gone: sees })
const seesOwn = (view: View, owner: Owner): boolean => view === 'global' || owner === 'caller'
const open = (list: string): Case => ({ list, seen: byAll, gone: byAll })

const cases: Record<string, Case> = {
  leads: owned('listLeads'),
  persons: owned('listPersons'),
  organizations: owned('listOrganizations'),
  quotes: owned('listQuotes'),
  activities: owned('listActivities'),
  emails: owned('listEmails'),
  tokens: owned('listTokens'),
  sessions: owned('listAccountSessions'),
  // Only the owner sees a view that is shared with no group, and who may do everything.
  views: { list: 'listViews', seen: seesOwn, gone: seesOwn },
  // Callers who see the record of a file see the file. The uploader sees a deleted file.
  files: { list: 'getFile', seen: sees, gone: (_view, owner) => owner === 'caller' },
  users: { list: 'listUsers', seen: sees, gone: byUnlimited },
  // Callers who see the person see the sent mail.
  sends: { list: 'listCampaignSends', seen: sees, gone: byUnlimited },
  configuration: open('getConfiguration'),
  exports: open('listUsers'),
  // The list with this name in its path is the feed.
  events: open('listMarketingEvents'),
}

/** Returns the case of a type. All callers with the permission see the records of other types. */
export function caseOf(type: string): Case {
  const listed = facts.find(([id, { path }]) => /^list/.test(id) && path.endsWith(`/${type}`) && !path.includes('{'))
  const found = cases[type] ?? (listed && open(listed[0]))
  if (!found)
    throw new Error(`Write a case for ${type} into matrix.events.cases.ts: no list of the contract is of this type.`)
  return found
}
