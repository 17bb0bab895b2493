// Lists every configuration key with its kind and default. The contract defines the
// types of the values. This list adds their order and defaults, and marks secrets and files.
import type { Config } from '../../config/config.ts'
import type { Schema } from '../../contract/types.ts'
import type { FileLimits } from '../files/attach.ts'

export type ConfigurationCode = keyof Schema<'ConfigurationValues'>
export type ConfigurationKind = Schema<'ConfigurationEntry'>['type']

export interface ConfigurationKey {
  code: ConfigurationCode
  kind: ConfigurationKind
  initial: unknown
}

const labels: Readonly<Record<string, string>> = {
  dashboard: 'Dashboard',
  leads: 'Leads',
  quotes: 'Quotes',
  'mail.mail': 'Mail',
  'mail.inbox': 'Inbox',
  'mail.draft': 'Draft',
  'mail.outbox': 'Outbox',
  'mail.sent': 'Sent',
  'mail.trash': 'Trash',
  activities: 'Activities',
  'contacts.contacts': 'Contacts',
  'contacts.persons': 'Persons',
  'contacts.organizations': 'Organizations',
  products: 'Products',
  settings: 'Settings',
  configuration: 'Configuration',
}

const imap = 'email.imap.account'

export const initialNumberFormat = 'Q-{year}-{number:4}'
export const initialValidDays = 30

/** Returns all keys in display order. The mailbox keys default to the environment variables. */
export const configurationKeys = ({ imap: account, locale }: Config): readonly ConfigurationKey[] => [
  { code: 'general.general.locale_settings.locale', kind: 'locale', initial: locale },
  { code: 'general.general.admin_logo.logo_image', kind: 'file', initial: null },
  { code: 'general.company.name', kind: 'text', initial: '' },
  { code: 'general.company.address', kind: 'text', initial: '' },
  { code: 'general.company.tax_id', kind: 'text', initial: '' },
  { code: 'general.company.logo', kind: 'file', initial: null },
  { code: 'quotes.number.format', kind: 'text', initial: initialNumberFormat },
  { code: 'quotes.valid_days', kind: 'integer', initial: initialValidDays },
  { code: 'quotes.terms', kind: 'text', initial: '' },
  { code: 'email.from_owner', kind: 'boolean', initial: false },
  { code: 'visibility.ownerless', kind: 'enum', initial: 'global' },
  { code: 'reports.months.close_after_days', kind: 'integer', initial: 0 },
  { code: 'general.settings.footer.label', kind: 'html', initial: '' },
  ...Object.entries(labels).map(
    ([name, initial]): ConfigurationKey => ({
      code: `general.settings.menu.${name}` as ConfigurationCode,
      kind: 'text',
      initial,
    }),
  ),
  { code: 'general.settings.menu_color.brand_color', kind: 'color', initial: '#0E90D9' },
  { code: `${imap}.host`, kind: 'text', initial: account.host },
  { code: `${imap}.port`, kind: 'integer', initial: account.port },
  { code: `${imap}.encryption`, kind: 'enum', initial: account.encryption },
  { code: `${imap}.validate_cert`, kind: 'boolean', initial: account.validateCert },
  { code: `${imap}.username`, kind: 'text', initial: account.username },
  { code: `${imap}.password`, kind: 'secret', initial: null },
]

const mebibyte = 1024 * 1024

/**
 * The file types and sizes that each file key accepts. The company logo appears in PDF documents,
 * which can embed only JPEG and PNG.
 */
export const fileLimits: Readonly<Partial<Record<ConfigurationCode, FileLimits>>> = {
  'general.general.admin_logo.logo_image': {
    types: ['image/bmp', 'image/jpeg', 'image/png', 'image/webp'],
    maxBytes: 10 * mebibyte,
  },
  'general.company.logo': { types: ['image/jpeg', 'image/png'], maxBytes: mebibyte },
}
