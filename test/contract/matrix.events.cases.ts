// The callers who see events about a record, by its type: the rules of DOMAIN 7.4, 16 and 20.2 for
// the list of the type.
import { type Owner, sees, type View } from './matrix.scope.ts'

interface Case {
  /** The operation whose permission and ability open the type. */
  list: string
  /** The callers who see a record of an owner, and those who saw a deleted one. */
  seen: (view: View, owner: Owner) => boolean
  gone: (view: View, owner: Owner) => boolean
}

export const byAll = () => true
const byUnlimited = (view: View): boolean => view === 'global'
const owned = (list: string): Case => ({ list, seen: sees, gone: sees })
const open = (list: string): Case => ({ list, seen: byAll, gone: byAll })

/** DOMAIN 7.4, 16 and 20.2: every type that the contract names. */
export const cases: Record<string, Case> = {
  leads: owned('listLeads'),
  persons: owned('listPersons'),
  organizations: owned('listOrganizations'),
  quotes: owned('listQuotes'),
  activities: owned('listActivities'),
  emails: owned('listEmails'),
  tokens: owned('listTokens'),
  sessions: owned('listAccountSessions'),
  // A file is seen with its record; a deleted one by its uploader.
  files: { list: 'getFile', seen: sees, gone: (_view, owner) => owner === 'caller' },
  users: { list: 'listUsers', seen: sees, gone: byUnlimited },
  // A row of the ledger is seen with its person.
  sends: { list: 'listCampaignSends', seen: sees, gone: byUnlimited },
  suppressions: open('listSuppressions'),
  configuration: open('getConfiguration'),
  products: open('listProducts'),
  tags: open('listTags'),
  sources: open('listSources'),
  types: open('listTypes'),
  pipelines: open('listPipelines'),
  attributes: open('listAttributes'),
  roles: open('listRoles'),
  groups: open('listGroups'),
  'email-templates': open('listEmailTemplates'),
  workflows: open('listWorkflows'),
  webhooks: open('listWebhooks'),
  'web-forms': open('listWebForms'),
  warehouses: open('listWarehouses'),
  locations: open('listLocations'),
  events: open('listMarketingEvents'),
  campaigns: open('listCampaigns'),
  imports: open('listImports'),
}
