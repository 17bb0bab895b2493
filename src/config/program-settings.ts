// The settings of the program itself: its checks, background work, extensions and log.
import * as parsers from './parsers.ts'
import type { SettingGroup } from './setting.ts'

export const program = {
  env: {
    name: 'ACCORD_ENV',
    default: 'development',
    meaning:
      'production, development or test. Production checks a sample of the replies against the contract and logs and counts violations; otherwise every reply is checked, and a violation becomes a 500.',
    parse: parsers.parseOneOf('production', 'development', 'test'),
  },
  strict: {
    name: 'ACCORD_STRICT',
    default: 'on',
    meaning:
      'off ignores unknown query parameters and body keys instead of refusing them. Unknown conditions of a query, a view or an audience are refused in either mode.',
    parse: parsers.onOff,
  },
  compatV1: {
    name: 'ACCORD_COMPAT_V1',
    default: 'off',
    meaning: 'on also serves /api/v1 for clients of the REST API of Krayin CRM; src/http/compat-v1 says how.',
    parse: parsers.onOff,
  },
  worker: {
    name: 'ACCORD_WORKER',
    default: 'on',
    meaning: 'off leaves background jobs to a separate process, `accord worker`.',
    parse: parsers.onOff,
  },
  listeners: {
    name: 'ACCORD_LISTENERS',
    default: '',
    defaultInWords: 'none',
    meaning: 'Listener modules, comma-separated: files, folders or packages.',
    parse: parsers.parseList,
  },
  webhookAllowHttp: {
    name: 'ACCORD_WEBHOOK_ALLOW_HTTP',
    default: 'off',
    meaning: 'on allows http addresses for webhooks.',
    parse: parsers.onOff,
  },
  webhookAllowCidrs: {
    name: 'ACCORD_WEBHOOK_ALLOW_CIDRS',
    default: '',
    defaultInWords: 'none',
    meaning: 'Private networks that webhooks may reach, comma-separated, such as 10.0.0.0/8.',
    parse: parsers.parseCidrRanges,
  },
  logLevel: {
    name: 'ACCORD_LOG_LEVEL',
    default: 'info',
    meaning: 'fatal, error, warn, info, debug, trace or silent.',
    parse: parsers.parseOneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  },
  logFormat: {
    name: 'ACCORD_LOG_FORMAT',
    default: 'auto',
    meaning: 'Form of the log: text, json, or auto, which is text at a terminal and JSON elsewhere.',
    parse: parsers.parseOneOf('auto', 'json', 'text'),
  },
} satisfies SettingGroup
