#!/usr/bin/env node
// The command line `accord`. Only the code of the called command is loaded, so that the command
// starts fast. A failure prints one sentence on standard error and exits with 1.
import { Command, Option } from 'commander'
import { surviveClosedOutput } from './commands/closed-output.ts'
import { reportFailure } from './commands/command-error.ts'
import { readEnvironment } from './commands/environment.ts'
import { lowerPriority } from './commands/priority.ts'
import { settingsHelp } from './config/settings-text.ts'
import { abilityAreas } from './contract/operations.gen.ts'
import { version } from './installation/package-info.ts'

const program = new Command('accord')
  .description('Accord CRM: a self-hosted CRM REST API whose OpenAPI contract is the product.')
  .version(version)
  .showHelpAfterError('(accord --help lists the commands)')
  .addHelpText(
    'after',
    '\nSettings come from the environment and from .env in this folder; `accord serve --help` lists them.',
  )

program
  .command('install')
  .description('prepare the data folder: .env, secret, database, administrator, documentation; safe to repeat')
  .option('--new', 'begin a new installation; moves existing data aside and deletes nothing')
  .option('--new-secret', 'accept a different secret, or generate one; values encrypted with the old one are lost')
  .action(async (options) => (await import('./commands/install/install.ts')).installCommand(readEnvironment(), options))

program
  .command('serve')
  .description('serve the API and its documentation')
  .option('--processes <number>', 'how many API processes share the port; more than one needs PostgreSQL', '1')
  .addOption(new Option('--process <number>', 'set by the supervisor').hideHelp())
  .addHelpText(
    'after',
    () =>
      '\nWith --processes, the first process also runs the background jobs unless ACCORD_WORKER=off. A process\n' +
      'that ends is started again. Each opens up to twice ACCORD_DATABASE_CONNECTIONS connections.\n' +
      `\nSettings, with their defaults:\n${settingsHelp()}`,
  )
  .action(async (options) =>
    (await import('./commands/serve-processes.ts')).serveProcessesCommand(readEnvironment, options),
  )

program
  .command('start')
  .description('install what is missing, print the addresses, then serve (npm start runs this)')
  .action(async () => void (await (await import('./commands/serve.ts')).startCommand(readEnvironment())))

program
  .command('worker')
  .description('run background jobs (mail, webhooks, workflows, campaigns, imports) for servers with ACCORD_WORKER=off')
  .action(async () => (await import('./commands/worker.ts')).workerCommand(readEnvironment()))

program
  .command('migrate')
  .description('apply pending database migrations, after a copy of a SQLite database')
  .action(async () => (await import('./commands/migrate.ts')).migrateCommand(readEnvironment()))

program
  .command('migrate-to')
  .description('copy all data into an empty database of the other engine, PostgreSQL or SQLite, and verify the copy')
  .argument('<url>', 'the new database: postgres://<user>:<password>@<host>/<database> or sqlite:<path>')
  .option('--json', 'print the result as JSON')
  .addHelpText(
    'after',
    '\nStop all servers and workers first. For example:\n' +
      '  createdb --encoding UTF8 accord\n' +
      '  accord migrate-to postgres://accord:secret@localhost/accord\n' +
      '  accord migrate-to sqlite:/srv/accord/data/new.db\n' +
      '\nThe source is ACCORD_DATABASE_URL and stays as it is. Files, secret and settings stay where they are.\n' +
      'An interrupted copy goes on when the command runs again. Set ACCORD_DATABASE_URL afterwards.',
  )
  .action(async (url, options) =>
    (await import('./commands/migrate-to.ts')).migrateToCommand(readEnvironment(), url, options),
  )

program
  .command('backup')
  .description('copy the database, the files, the secret and the contract while servers write, and verify the copy')
  .option('--to <folder>', 'parent folder of the backup; default: backups in the data folder')
  .option('--keep <number>', 'how many complete backups to keep there; older ones are removed')
  .option('--without-secret', 'leave the secret out; store it elsewhere, because only it decrypts the encrypted values')
  .addHelpText(
    'after',
    '\nEvery night, by cron:\n  15 2 * * *  cd /srv/accord && accord backup --to /mnt/backups --keep 14\n' +
      'By systemd: a service with ExecStart=accord backup --to /mnt/backups --keep 14 and a timer with OnCalendar=02:15.',
  )
  .action(async (options) => (await import('./commands/backup/backup.ts')).backupCommand(readEnvironment(), options))

program
  .command('restore')
  .description('verify a backup, then restore it into the data folder; existing data are never deleted')
  .argument('<backup>', 'a folder made by accord backup')
  .option('--verify', 'only verify it, to the last row and byte, in a temporary folder')
  .option('--force', 'move existing data aside first')
  .action(async (backup, options) =>
    (await import('./commands/restore/restore.ts')).restoreCommand(readEnvironment(), backup, options),
  )

program
  .command('regenerate')
  .description('regenerate code and documentation from openapi.yaml, and publish the contract to the data folder')
  .option('--check', 'write nothing; list stale files and exit with 1 if there are any')
  .action(async (options) => (await import('./commands/regenerate.ts')).regenerateCommand(readEnvironment, options))

program
  .command('doctor')
  .description('check the whole installation and say how to fix each finding')
  .option('--deep', 'read all files, not only the newest')
  .action(async (options) => (await import('./commands/doctor/doctor.ts')).doctorCommand(readEnvironment(), options))

program
  .command('import <file>')
  .description('validate a CSV or XLSX file, then create, change or delete a record for each row')
  .requiredOption('--type <type>', 'persons, organizations, products or leads')
  .option('--action <action>', 'append (create or change) or delete', 'append')
  .option('--skip-errors', 'skip invalid rows instead of importing nothing')
  .option('--allowed-errors <number>', 'how many errors to tolerate without --skip-errors', '0')
  .option(
    '--replace-lists',
    'replace the e-mail addresses and phone numbers of matching persons instead of adding to them',
  )
  .option('--separator <character>', 'column separator: , ; | or \\t', ',')
  .option('--as <email>', 'user who owns the import; default: ACCORD_ADMIN_EMAIL')
  .action(async (file, options) =>
    (await import('./commands/import.ts')).importCommand(readEnvironment(), file, options),
  )

program
  .command('campaign:process')
  .description('queue the e-mails of the active campaigns of one day; a server or worker sends them')
  .option('--date <day>', 'YYYY-MM-DD; default: today')
  .action(async (options) =>
    (await import('./commands/campaign.ts')).processCampaignsCommand(readEnvironment(), options),
  )

const search = program.command('search').description('the search index')
search
  .command('rebuild')
  .description('rebuild the search index; servers may keep running')
  .action(async () => (await import('./commands/search.ts')).rebuildSearchCommand(readEnvironment()))

program
  .command('inbound-emails:process')
  .description('fetch e-mails from the mailbox now (MAIL_RECEIVER_DRIVER=webklex-imap)')
  .action(async () => (await import('./commands/inbound.ts')).processInboundCommand(readEnvironment()))

const jobs = program.command('jobs').description('background jobs')
jobs
  .command('list')
  .description('print waiting, running and failed jobs, and failing webhooks')
  .option('--state <state>', 'waiting, blocked, running or buried')
  .action(async (options) => (await import('./commands/worker.ts')).listJobsCommand(readEnvironment(), options))
jobs
  .command('retry')
  .description('run failed (buried) jobs again; without ids, all of them')
  .argument('[ids...]', 'ids of jobs')
  .action(async (ids) => (await import('./commands/worker.ts')).retryJobsCommand(readEnvironment(), ids))

const user = program.command('user').description('users')
user
  .command('create')
  .description('create a user; prints a random password once unless one is given')
  .requiredOption('--name <name>', 'full name')
  .requiredOption('--email <address>', 'e-mail address to sign in with')
  .requiredOption('--role <role>', 'name or id of a role')
  .option('--password-stdin', 'read the password from the first line of standard input')
  .option('--password <password>', 'password on the command line, where other users of this machine can read it')
  .addHelpText(
    'after',
    '\nFor example:\n  accord user create --name "Ada Lovelace" --email ada@example.com --role Administrator\n' +
      '  pass show accord/ada | accord user create --name "Ada Lovelace" --email ada@example.com --role Sales --password-stdin',
  )
  .action(async (options) => (await import('./commands/user.ts')).createUserCommand(readEnvironment(), options))
user
  .command('list')
  .description('print all users: id, e-mail address, name, role, and active, invited (no password yet) or disabled')
  .addHelpText('after', "\nFor example, all disabled users:\n  accord user list | awk -F '\\t' '$5 == \"disabled\"'")
  .action(async () => (await import('./commands/user.ts')).listUsersCommand(readEnvironment()))
user
  .command('set-password')
  .description("set a user's password and end all tokens and sessions of the user")
  .argument('<email>', 'e-mail address of the user')
  .option('--generate', 'generate a random password and print it once')
  .addHelpText(
    'after',
    '\nAt a terminal the command prompts twice; otherwise it reads the first line of standard input:\n' +
      '  accord user set-password ada@example.com\n' +
      '  pass show accord/ada | accord user set-password ada@example.com\n' +
      '  accord user set-password ada@example.com --generate\n' +
      '\nIt exits with 1 and changes nothing if there is no such user or the password is refused.',
  )
  .action(async (email, options) =>
    (await import('./commands/user.ts')).setPasswordCommand(readEnvironment(), email, options),
  )
user
  .command('disable')
  .description('stop a user from signing in and end all tokens and sessions; records stay')
  .argument('<email>', 'e-mail address of the user')
  .addHelpText(
    'after',
    '\nFor example:\n  accord user disable ada@example.com\n' +
      '\nIt exits with 1 if there is no such user, and for the last active user with every permission.',
  )
  .action(async (email) => (await import('./commands/user.ts')).disableUserCommand(readEnvironment(), email))
user
  .command('enable')
  .description('let a user sign in again')
  .argument('<email>', 'e-mail address of the user')
  .addHelpText('after', '\nFor example:\n  accord user enable ada@example.com')
  .action(async (email) => (await import('./commands/user.ts')).enableUserCommand(readEnvironment(), email))

const token = program.command('token').description('bearer tokens')
token
  .command('create')
  .description('create a token for a user and print it once')
  .requiredOption('--email <address>', 'e-mail address of the user that the token acts for')
  .requiredOption('--name <name>', 'purpose of the token')
  .option('--abilities <list>', 'comma-separated abilities such as leads:read,persons:*', '*')
  .addHelpText(
    'after',
    `\nAbilities: *, *:read, and <area>:read, <area>:write or <area>:* for these areas:\n  ${abilityAreas.join(', ')}\n` +
      "The area users covers users, roles, groups and other users' tokens; settings covers none of these.",
  )
  .option('--expires-in-days <days>', '1 to 365, or never', '90')
  .action(async (options) => (await import('./commands/token.ts')).createTokenCommand(readEnvironment(), options))

const files = program.command('files').description('uploaded files')
files
  .command('clean')
  .description(
    'remove uploads that no record used within a day and files of deleted records; move unreferenced contents to the trash',
  )
  .option('--all', 'also if more than a tenth of all files belong to no record')
  .addHelpText('after', '\nThe trash is files/trash in the data folder; contents are deleted there after seven days.')
  .action(async (options) => (await import('./commands/files.ts')).cleanFilesCommand(readEnvironment(), options))

program.hook('preAction', (_program, command) => {
  if (command.name() === 'doctor') lowerPriority()
})

surviveClosedOutput()
try {
  await program.parseAsync()
} catch (error) {
  reportFailure(error)
}
