// Creates the tables of e-mail templates, of e-mails with their folders, attachments, tags and the
// references between them, which form threads, and of the positions in mailboxes.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
  id,
  integer,
  json,
  key,
  listed,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
  timestamps,
  version,
} from '../schema/columns.ts'

const folders = ['inbox', 'important', 'starred', 'draft', 'outbox', 'sent', 'spam', 'trash']

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'email_templates',
    {
      id: id(),
      name: text(),
      name_key: key(),
      subject: text(),
      content: text(),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: listed },
  )
  await createTable(
    db,
    dialect,
    'emails',
    {
      id: id(),
      subject: nullable(text()),
      subject_key: nullable(key()),
      html: nullable(text()),
      text: nullable(text()),
      to: json('[]'),
      cc: json('[]'),
      bcc: json('[]'),
      from: json('[]'),
      sender: json('[]'),
      from_name: nullable(text()),
      source: oneOf(['web', 'email']),
      sender_type: oneOf(['user', 'person']),
      status: oneOf(['draft', 'queued', 'sending', 'sent', 'failed', 'received']),
      error: nullable(text()),
      attempts: integer(0),
      sent_at: nullable(timestamp()),
      /** The folders before the e-mail was moved to the trash. */
      kept_folders: json('[]'),
      is_read: flag(false),
      is_automatic: flag(false),
      message_id: text(),
      message_id_key: key(),
      parent_id: references('emails', 'set null'),
      /** The first e-mail of the thread, which may be this e-mail. Null only during the insert. */
      thread_id: nullable(integer()),
      person_id: references('persons', 'set null'),
      lead_id: references('leads', 'set null'),
      user_id: references('users', 'set null'),
      ...timestamps(),
      ...version(),
      raw_file_id: references('files', 'set null'),
      /** The Reply-To addresses of a received e-mail. An answer goes to them. */
      reply_addresses: json('[]'),
      /** The time at which a sent e-mail came back. Its API status is then `bounced`. */
      bounced_at: nullable(timestamp()),
      /** The time at which a queued e-mail is sent. */
      send_at: nullable(timestamp()),
    },
    {
      unique: [['message_id']],
      indexes: [
        ['subject_key', 'id'],
        ['message_id_key'],
        ['sent_at', 'id'],
        ['status', 'bounced_at', 'id'],
        ['thread_id', 'id'],
        ['user_id', 'id'],
        ...listed,
        ['is_read', 'id'],
        ['source', 'id'],
        ['sender_type', 'id'],
      ],
    },
  )
  await createTable(
    db,
    dialect,
    'email_folders',
    { email_id: references('emails', 'cascade'), folder: oneOf(folders) },
    { primaryKey: ['email_id', 'folder'], indexes: [['folder', 'email_id']] },
  )
  await createTable(
    db,
    dialect,
    'email_references',
    { id: id(), email_id: references('emails', 'cascade'), reference_id: text(), position: integer() },
    { unique: [['email_id', 'reference_id']], indexes: [['reference_id']] },
  )
  await createTable(
    db,
    dialect,
    'email_attachments',
    {
      id: id(),
      email_id: references('emails', 'cascade'),
      file_id: references('files', 'restrict'),
      name: text(),
      content_id: nullable(text()),
      ...timestamps(),
    },
    { unique: [['email_id', 'file_id']] },
  )
  await createTable(
    db,
    dialect,
    'email_tags',
    { email_id: references('emails', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['email_id', 'tag_id'] },
  )
  await createTable(
    db,
    dialect,
    'mailboxes',
    {
      id: id(),
      account: text(),
      path: text(),
      /** The UIDVALIDITY of the mailbox. Stored UIDs are valid only while it is the same. */
      uid_validity: text(),
      last_uid: integer(0),
      ...timestamps(),
    },
    { unique: [['account', 'path']] },
  )
}
