// Creates the tables of roles, users, groups, tokens, sessions, sign-ins, links to set a password,
// and idempotency keys.

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

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'roles',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: nullable(text()),
      permission_type: oneOf(['all', 'custom']),
      permissions: nullable(json()),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: listed },
  )
  await createTable(
    db,
    dialect,
    'users',
    {
      id: id(),
      name: text(),
      name_key: key(),
      email: text(),
      email_key: key(),
      password_hash: nullable(text()),
      is_active: flag(true),
      view_permission: oneOf(['global', 'group', 'individual'], 'global'),
      role_id: references('roles', 'restrict'),
      image_file_id: nullable(integer()),
      ...timestamps(),
      ...version(),
      /** The times of the last notices about sign-ins. */
      device_notice_at: nullable(timestamp()),
      guessing_notice_at: nullable(timestamp()),
    },
    { unique: [['email_key']], indexes: [['name_key', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'groups',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: nullable(text()),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: listed },
  )
  await createTable(
    db,
    dialect,
    'user_groups',
    { user_id: references('users', 'cascade'), group_id: references('groups', 'cascade') },
    { primaryKey: ['user_id', 'group_id'] },
  )
  await createTable(
    db,
    dialect,
    'tokens',
    {
      id: id(),
      user_id: references('users', 'cascade'),
      name: text(),
      kind: oneOf(['login', 'personal']),
      abilities: json('["*"]'),
      secret_hash: text(),
      expires_at: nullable(timestamp()),
      last_used_at: nullable(timestamp()),
      last_used_ip: nullable(text()),
      allowed_ips: json('[]'),
      ...timestamps(),
      ...version(),
      /** The token that created this token. */
      parent_id: nullable(references('tokens', 'cascade')),
    },
    { unique: [['secret_hash']], indexes: [['expires_at', 'id'], ['last_used_at', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'sessions',
    {
      id: id(),
      user_id: references('users', 'cascade'),
      secret_hash: text(),
      is_remembered: flag(false),
      last_used_at: timestamp(),
      /** The latest end of the session. An idle session expires earlier. */
      expires_at: timestamp(),
      ...timestamps(),
      /** The address and the browser from which the session began. */
      ip: nullable(text()),
      user_agent: nullable(text()),
    },
    { unique: [['secret_hash']], indexes: [['expires_at', 'id']] },
  )
  await createTable(
    db,
    dialect,
    'login_attempts',
    {
      id: id(),
      /** A hash of the entered e-mail address. The account may not exist. */
      account: key(),
      network: key(),
      created_at: timestamp(),
    },
    { indexes: [['account', 'created_at'], ['network', 'created_at'], ['created_at']] },
  )
  await createTable(
    db,
    dialect,
    'sign_in_devices',
    {
      id: id(),
      user_id: references('users', 'cascade'),
      /** The SHA-256 of the device token. */
      secret_hash: key(),
      last_used_at: timestamp(),
      created_at: timestamp(),
    },
    { unique: [['secret_hash']], indexes: [['user_id', 'last_used_at'], ['last_used_at']] },
  )
  await createTable(
    db,
    dialect,
    'password_resets',
    {
      id: id(),
      user_id: references('users', 'cascade'),
      secret_hash: text(),
      expires_at: timestamp(),
      created_at: timestamp(),
    },
    { unique: [['secret_hash']], indexes: [['expires_at', 'id']] },
  )
  await createTable(
    db,
    dialect,
    'idempotency_keys',
    {
      id: id(),
      token_id: nullable(references('tokens', 'cascade')),
      session_id: nullable(references('sessions', 'cascade')),
      key: text(),
      request_hash: text(),
      state: oneOf(['in_flight', 'committed', 'completed'], 'in_flight'),
      /** The process that handles the request. Other processes can detect that it has ended. */
      held_by: nullable(text()),
      status: nullable(integer()),
      headers: nullable(text()),
      body: nullable(text()),
      created_at: timestamp(),
      expires_at: timestamp(),
    },
    {
      unique: [
        ['token_id', 'key'],
        ['session_id', 'key'],
      ],
      indexes: [['expires_at']],
    },
  )
}
