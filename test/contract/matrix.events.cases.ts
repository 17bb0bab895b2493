// The callers who see events of a record, by its type.
import { type Owner, sees, type View } from './matrix.scope.ts'

interface Case {
  /** The operation whose permission and ability are required. */
  list: string
  /** Whether a view shows a record of the owner, and whether it shows a deleted record. */
  seen: (view: View, owner: Owner) => boolean
  gone: (view: View, owner: Owner) => boolean
}

export const byAll = () => true
const byUnlimited = (view: View): boolean => view === 'global'
const owned = (list: string): Case => ({ list, seen: sees, gone: sees })
const open = (list: string): Case => ({ list, seen: byAll, gone: byAll })

/** All event types of the contract. */
export const cases: Record<string, Case> = {
  leads: owned('listLeads'),
  persons: owned('listPersons'),
  organizations: owned('listOrganizations'),
  quotes: owned('listQuotes'),
  activities: owned('listActivities'),
  emails: owned('listEmails'),
  tokens: owned('listTokens'),
  sessions: owned('listAccountSessions'),
  // Callers who see the record of a file see the file. The uploader sees a deleted file.
  files: { list: 'getFile', seen: sees, gone: (_view, owner) => owner === 'caller' },
  users: { list: 'listUsers', seen: sees, gone: byUnlimited },
  // Callers who see the person see the sent mail.
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
