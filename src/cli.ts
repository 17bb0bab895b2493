#!/usr/bin/env node
// The command `accord`. Each command is loaded when it is asked for, so that starting one does not wait for the others.
// A failure is one plain sentence on standard error and exit code 1.
import { Command } from 'commander'
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
    '\nSettings come from the environment and from .env in this folder; `accord install` writes one with every setting explained.',
  )

program
  .command('install')
  .description('prepare the data folder: .env, secret, tables, seeds, administrator, documentation; repeatable')
  .option('--new', 'begin a new installation; moves the data that are there aside, removes nothing')
  .option('--new-secret', 'go on with another secret, or make a new one; loses what the former one encrypted')
  .action(async (options) => (await import('./commands/install/install.ts')).installCommand(readEnvironment(), options))

program
  .command('serve')
  .description('serve the API and its documentation')
  .addHelpText('after', () => `\nSettings, with their defaults:\n${settingsHelp()}`)
  .action(async () => void (await (await import('./commands/serve.ts')).serveCommand(readEnvironment())))

program
  .command('start')
  .description('install what is missing, say where everything is, then serve (what npm start runs)')
  .action(async () => void (await (await import('./commands/serve.ts')).startCommand(readEnvironment())))

program
  .command('worker')
  .description(
    'do what happens by itself (mail, webhooks, workflows, campaigns, imports) for servers with ACCORD_WORKER=off',
  )
  .action(async () => (await import('./commands/worker.ts')).workerCommand(readEnvironment()))

program
  .command('migrate')
  .description('bring the database to the newest shape, after a copy of it')
  .action(async () => (await import('./commands/migrate.ts')).migrateCommand(readEnvironment()))

program
  .command('backup')
  .description(
    'copy the database, the files, the secret and the contract, while servers go on writing; read again and complete',
  )
  .option('--to <folder>', 'where the backup gets a folder of its own; backups in the data folder when left out')
  .option('--keep <number>', 'how many complete backups stay in that folder; the oldest others are removed')
  .option('--without-secret', 'leave the secret out; then keep it elsewhere, for nothing else opens what is sealed')
  .addHelpText(
    'after',
    '\nEvery night, by cron:\n  15 2 * * *  cd /srv/accord && accord backup --to /mnt/backups --keep 14\n' +
      'By systemd: a service with ExecStart=accord backup --to /mnt/backups --keep 14 and a timer with OnCalendar=02:15.',
  )
  .action(async (options) => (await import('./commands/backup/backup.ts')).backupCommand(readEnvironment(), options))

program
  .command('restore')
  .description('bring a backup back into the data folder, after a rehearsal of it; nothing that is there is removed')
  .argument('<backup>', 'the folder that accord backup has made')
  .option('--verify', 'rehearse it in a temporary folder, to the last row and byte, and change nothing')
  .option('--force', 'move data that are there aside first')
  .action(async (backup, options) =>
    (await import('./commands/restore/restore.ts')).restoreCommand(readEnvironment(), backup, options),
  )

program
  .command('regenerate')
  .description('make everything that is generated from openapi.yaml, and publish it to the data folder')
  .option('--check', 'write nothing; name what is stale and exit with 1')
  .action(async (options) => (await import('./commands/regenerate.ts')).regenerateCommand(readEnvironment, options))

program
  .command('doctor')
  .description('look at everything this installation needs and say what to do about what is missing')
  .option('--deep', 'read the bytes of all files, not of the newest alone')
  .action(async (options) => (await import('./commands/doctor/doctor.ts')).doctorCommand(readEnvironment(), options))

program
  .command('import <file>')
  .description('import a CSV or XLSX file: validate it, then create, change or delete a record for each row')
  .requiredOption('--type <type>', 'persons, organizations, products or leads')
  .option('--action <action>', 'append (create or change) or delete', 'append')
  .option('--skip-errors', 'leave out rows that are wrong instead of importing nothing')
  .option('--allowed-errors <number>', 'how many errors are left out without --skip-errors', '0')
  .option('--replace-lists', 'replace addresses and numbers of persons that are found instead of adding to them')
  .option('--separator <character>', 'between the columns: , ; | or \\t', ',')
  .option('--as <email>', 'the user who owns the import; ACCORD_ADMIN_EMAIL when left out')
  .action(async (file, options) =>
    (await import('./commands/import.ts')).importCommand(readEnvironment(), file, options),
  )

program
  .command('campaign:process')
  .description('queue the mails of the active campaigns of a day; a server or worker sends them, and may be running')
  .option('--date <day>', 'YYYY-MM-DD; today when left out')
  .action(async (options) =>
    (await import('./commands/campaign.ts')).processCampaignsCommand(readEnvironment(), options),
  )

const search = program.command('search').description('the index behind the search')
search
  .command('rebuild')
  .description('index every record anew; the server may go on running')
  .action(async () => (await import('./commands/search.ts')).rebuildSearchCommand(readEnvironment()))

program
  .command('inbound-emails:process')
  .description('fetch the mails of the mailbox now (MAIL_RECEIVER_DRIVER=webklex-imap)')
  .action(async () => (await import('./commands/inbound.ts')).processInboundCommand(readEnvironment()))

const jobs = program.command('jobs').description('what is done in the background')
jobs
  .command('list')
  .description('print what waits, runs or was given up, and which webhooks fail')
  .option('--state <state>', 'waiting, blocked, running or buried')
  .action(async (options) => (await import('./commands/worker.ts')).listJobsCommand(readEnvironment(), options))
jobs
  .command('retry')
  .description('try jobs again that were given up; all of them when none is named')
  .argument('[ids...]', 'ids of jobs')
  .action(async (ids) => (await import('./commands/worker.ts')).retryJobsCommand(readEnvironment(), ids))

const user = program.command('user').description('people who may sign in')
user
  .command('create')
  .description('create a user; a random password is printed once unless one is given')
  .requiredOption('--name <name>', 'full name')
  .requiredOption('--email <address>', 'e-mail address to sign in with')
  .requiredOption('--role <role>', 'name or id of a role')
  .option('--password-stdin', 'take the first line of standard input as the password')
  .option('--password <password>', 'the same on the command line, which other users of this machine can read')
  .addHelpText(
    'after',
    '\nFor example:\n  accord user create --name "Ada Lovelace" --email ada@example.com --role Administrator\n' +
      '  pass show accord/ada | accord user create --name "Ada Lovelace" --email ada@example.com --role Sales --password-stdin',
  )
  .action(async (options) => (await import('./commands/user.ts')).createUserCommand(readEnvironment(), options))
user
  .command('list')
  .description('print all users: id, e-mail address, name, role, and active, invited (no password yet) or disabled')
  .addHelpText('after', "\nFor example, all who are disabled:\n  accord user list | awk -F '\\t' '$5 == \"disabled\"'")
  .action(async () => (await import('./commands/user.ts')).listUsersCommand(readEnvironment()))
user
  .command('set-password')
  .description('set the password of a user; all tokens and sessions of the user end')
  .argument('<email>', 'e-mail address of the user')
  .option('--generate', 'make a random password and print it once')
  .addHelpText(
    'after',
    '\nThe password is asked for at a terminal, twice, and is otherwise the first line of standard input:\n' +
      '  accord user set-password ada@example.com\n' +
      '  pass show accord/ada | accord user set-password ada@example.com\n' +
      '  accord user set-password ada@example.com --generate\n' +
      '\nIt exits with 1 and changes nothing when there is no such user or the password is refused.',
  )
  .action(async (email, options) =>
    (await import('./commands/user.ts')).setPasswordCommand(readEnvironment(), email, options),
  )
user
  .command('disable')
  .description('keep a user from signing in; all tokens and sessions of the user end, records stay')
  .argument('<email>', 'e-mail address of the user')
  .addHelpText(
    'after',
    '\nFor example:\n  accord user disable ada@example.com\n' +
      '\nIt exits with 1 when there is no such user, and for the last active user who holds every permission.',
  )
  .action(async (email) => (await import('./commands/user.ts')).disableUserCommand(readEnvironment(), email))
user
  .command('enable')
  .description('let a user sign in again')
  .argument('<email>', 'e-mail address of the user')
  .addHelpText('after', '\nFor example:\n  accord user enable ada@example.com')
  .action(async (email) => (await import('./commands/user.ts')).enableUserCommand(readEnvironment(), email))

const token = program.command('token').description('bearer tokens for programs')
token
  .command('create')
  .description('create a token for a user and print it once')
  .requiredOption('--email <address>', 'e-mail address of the user the token acts for')
  .requiredOption('--name <name>', 'what the token is for')
  .option('--abilities <list>', 'comma-separated abilities such as leads:read,persons:*', '*')
  .addHelpText(
    'after',
    `\nAbilities: *, *:read, and <area>:read, <area>:write or <area>:* for these areas:\n  ${abilityAreas.join(', ')}\n` +
      'The area users covers users, roles, groups and tokens of other users; settings covers none of these.',
  )
  .option('--expires-in-days <days>', '1 to 365, or never', '90')
  .action(async (options) => (await import('./commands/token.ts')).createTokenCommand(readEnvironment(), options))

const files = program.command('files').description('uploaded files')
files
  .command('clean')
  .description(
    'remove uploads that nobody attached within a day and files of records that are gone; move bytes that belong to no record to the trash',
  )
  .option('--all', 'also when more than a tenth of all files belong to no record')
  .addHelpText('after', '\nThe trash is files/trash in the data folder. Bytes are deleted after seven days there.')
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
