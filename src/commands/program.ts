// The tree of commands: their arguments, options, help and examples. The code of a command is
// loaded when it is called. The table in README.md, the shell completion and the tests follow this
// tree.
import { Command, Option } from 'commander'
import { settingsHelp } from '../config/settings-text.ts'
import { abilityAreas } from '../contract/operations.gen.ts'
import { version } from '../installation/package-info.ts'
import { wantsJson } from './command-error.ts'
import { jsonOption, readEnvironment, withExamples } from './command-parts.ts'
import { addImportCommand } from './import-command.ts'

const exitCodes = `
Exit codes:
  0  done
  1  the command failed, or it found something to fix (doctor, files clean, regenerate --check)
  2  the command line is wrong: an unknown command or option, or a missing argument`

/** Creates the program. Errors of the command line are thrown as CommanderError. */
export function createProgram(): Command {
  const program = new Command('accord')
    .exitOverride()
    .description('Accord CRM: a self-hosted CRM REST API whose OpenAPI contract is the product.')
    .version(version)
    .showHelpAfterError(wantsJson() ? false : '(accord --help lists the commands)')
    .configureOutput(wantsJson() ? { outputError: () => undefined } : {})
    .addHelpText('after', exitCodes)
    .addHelpText(
      'after',
      '\nSettings come from the environment and from .env in this folder; `accord serve --help` lists them.',
    )
  addServerCommands(program)
  addInstallationCommands(program)
  addBackupCommands(program)
  addImportCommand(program)
  addMailCommands(program)
  addMaintenanceCommands(program)
  addUserCommands(program.command('user').description('users'))
  addAccessCommands(program)
  addShellCommands(program)
  return program
}

function addServerCommands(program: Command): void {
  withExamples(
    program
      .command('start')
      .description('install what is missing, print the addresses, then serve (npm start runs this)'),
    'accord start',
    'ACCORD_PORT=8080 ACCORD_DATA_DIR=/srv/accord accord start',
  ).action(async () => void (await (await import('./serve.ts')).startCommand(readEnvironment())))

  withExamples(
    program.command('serve').description('serve the API and its documentation'),
    'accord serve',
    'ACCORD_ENV=production ACCORD_APP_URL=https://crm.example.com accord serve',
    'accord serve --processes 4',
  )
    .option('--processes <number>', 'how many API processes share the port; more than one needs PostgreSQL', '1')
    .addOption(new Option('--process <number>', 'set by the supervisor').hideHelp())
    .addHelpText(
      'after',
      () =>
        '\nWith --processes, the first process also runs the background jobs unless ACCORD_WORKER=off. A process\n' +
        'that ends is started again. Each opens up to twice ACCORD_DATABASE_CONNECTIONS connections.\n' +
        `\nSettings, with their defaults:\n${settingsHelp()}`,
    )
    .action(async (options) => (await import('./serve-processes.ts')).serveProcessesCommand(readEnvironment, options))

  withExamples(
    program
      .command('worker')
      .description(
        'run background jobs (mail, webhooks, workflows, campaigns, imports) for servers with ACCORD_WORKER=off',
      ),
    'accord worker',
  ).action(async () => (await import('./worker.ts')).workerCommand(readEnvironment()))

  withExamples(
    program
      .command('demo')
      .description('serve an invented company from a temporary folder, with catchers for e-mails and webhooks')
      .option('--port <number>', 'port of the server; the catchers listen on the next one', '8000'),
    'accord demo',
    'accord demo --port 8100',
  )
    .addHelpText(
      'after',
      '\nThe demo listens on this machine only, reads no settings and no .env, and leaves nothing behind.',
    )
    .action(async (options) => (await import('./demo/demo.ts')).demoCommand(options))

  withExamples(
    program
      .command('listen')
      .description('forward the events of this installation to a local address, signed like webhooks; for development')
      .argument('<url>', 'the address of the receiver, such as http://127.0.0.1:3000/hook')
      .option('--events <patterns>', 'comma-separated names of events; * stands for any segment', '*')
      .option('--since <id>', 'begin with the stored events after this event id; default: only new events')
      .option('--as <email>', 'user whose visible events are sent; default: ACCORD_ADMIN_EMAIL')
      .addOption(jsonOption()),
    'accord listen http://127.0.0.1:3000/hook',
    'accord listen http://localhost:3000/hook --events lead.create.after,person.*.after',
  )
    .addHelpText(
      'after',
      '\nIt reads the event log of the database, so it needs no webhook and no setting, and goes on while the server\n' +
        'restarts. Body, headers and signature are those of a webhook; the printed secret is the same each time. An\n' +
        'event that the receiver does not accept is not sent again; --since sends it once more.',
    )
    .action(async (url, options) => (await import('./listen.ts')).listenCommand(readEnvironment(), url, options))

  withExamples(
    program
      .command('open')
      .description('open the documentation of the running server in the browser, and print its address'),
    'accord open',
  ).action(async () => (await import('./open.ts')).openCommand(readEnvironment()))
}

function addInstallationCommands(program: Command): void {
  withExamples(
    program
      .command('install')
      .description('prepare the data folder: .env, secret, database, administrator, documentation; safe to repeat')
      .option('--new', 'begin a new installation; moves existing data aside and deletes nothing')
      .option('--new-secret', 'accept a different secret, or generate one; values encrypted with the old one are lost')
      .addOption(jsonOption()),
    'accord install',
    'accord install --json',
    'accord install --new',
  ).action(async (options) => (await import('./install/install.ts')).installCommand(readEnvironment(), options))

  withExamples(
    program
      .command('migrate')
      .description('apply pending database migrations, after a copy of a SQLite database')
      .addOption(jsonOption()),
    'accord migrate',
  ).action(async (options) => (await import('./migrate.ts')).migrateCommand(readEnvironment(), options))

  withExamples(
    program
      .command('migrate-to')
      .description(
        'copy all data into an empty database of the other engine, PostgreSQL or SQLite, and verify the copy',
      )
      .argument('<url>', 'the new database: postgres://<user>:<password>@<host>/<database> or sqlite:<path>')
      .addOption(jsonOption()),
    'accord migrate-to postgres://accord:secret@localhost/accord',
    'accord migrate-to sqlite:/srv/accord/data/new.db',
  )
    .addHelpText(
      'after',
      '\nStop all servers and workers first. A new database is made by: createdb --encoding UTF8 accord\n' +
        'The source is ACCORD_DATABASE_URL and stays as it is. Files, secret and settings stay where they are.\n' +
        'An interrupted copy goes on when the command runs again. Set ACCORD_DATABASE_URL afterwards.',
    )
    .action(async (url, options) => (await import('./migrate-to.ts')).migrateToCommand(readEnvironment(), url, options))

  withExamples(
    program
      .command('regenerate')
      .description('regenerate code and documentation from openapi.yaml, and publish the contract to the data folder')
      .option('--check', 'write nothing; list stale files and exit with 1 if there are any'),
    'accord regenerate',
    'accord regenerate --check',
  ).action(async (options) => (await import('./regenerate.ts')).regenerateCommand(readEnvironment, options))

  withExamples(
    program
      .command('doctor')
      .description(
        'check the whole installation and say how to fix each finding; exits with 1 for errors, not for hints',
      )
      .option('--deep', 'read all files, not only the newest')
      .addOption(jsonOption()),
    'accord doctor',
    'accord doctor --deep --json',
  ).action(async (options) => (await import('./doctor/doctor.ts')).doctorCommand(readEnvironment(), options))
}

function addBackupCommands(program: Command): void {
  withExamples(
    program
      .command('backup')
      .description('copy the database, the files, the secret and the contract while servers write, and verify the copy')
      .option('--to <folder>', 'parent folder of the backup; default: backups in the data folder')
      .option('--keep <number>', 'how many complete backups to keep there; older ones are removed')
      .option(
        '--without-secret',
        'leave the secret out; store it elsewhere, because only it decrypts the encrypted values',
      )
      .addOption(jsonOption()),
    'accord backup',
    'accord backup --to /mnt/backups --keep 14',
  )
    .addHelpText(
      'after',
      '\nEvery night, by cron:\n  15 2 * * *  cd /srv/accord && accord backup --to /mnt/backups --keep 14\n' +
        'By systemd: a service with ExecStart=accord backup --to /mnt/backups --keep 14 and a timer with OnCalendar=02:15.',
    )
    .action(async (options) => (await import('./backup/backup.ts')).backupCommand(readEnvironment(), options))

  withExamples(
    program
      .command('restore')
      .description('verify a backup, then restore it into the data folder; existing data are never deleted')
      .argument('<backup>', 'a folder made by accord backup')
      .option('--verify', 'only verify it, to the last row and byte, in a temporary folder')
      .option('--force', 'move existing data aside first')
      .addOption(jsonOption()),
    'accord restore /mnt/backups/2026-03-01T02-15-00Z --verify',
    'accord restore /mnt/backups/2026-03-01T02-15-00Z --force',
  ).action(async (backup, options) =>
    (await import('./restore/restore.ts')).restoreCommand(readEnvironment(), backup, options),
  )
}

function addMailCommands(program: Command): void {
  withExamples(
    program
      .command('campaign:process')
      .description('queue the e-mails of the active campaigns of one day; a server or worker sends them')
      .option('--date <day>', 'YYYY-MM-DD; default: today')
      .addOption(jsonOption()),
    'accord campaign:process',
    'accord campaign:process --date 2026-03-01',
  ).action(async (options) => (await import('./mail.ts')).processCampaignsCommand(readEnvironment(), options))

  withExamples(
    program
      .command('inbound-emails:process')
      .description('fetch e-mails from the mailbox now (MAIL_RECEIVER_DRIVER=webklex-imap)')
      .addOption(jsonOption()),
    'accord inbound-emails:process',
  ).action(async (options) => (await import('./mail.ts')).processInboundCommand(readEnvironment(), options))
}

function addMaintenanceCommands(program: Command): void {
  withExamples(
    program
      .command('search')
      .description('the search index')
      .command('rebuild')
      .description('rebuild the search index; servers may keep running')
      .addOption(jsonOption()),
    'accord search rebuild',
  ).action(async (options) => (await import('./maintenance.ts')).rebuildSearchCommand(readEnvironment(), options))

  const jobs = program.command('jobs').description('background jobs')
  withExamples(
    jobs
      .command('list')
      .description('print waiting, running and failed jobs, and failing webhooks')
      .addOption(
        new Option('--state <state>', 'only jobs in this state; buried jobs have failed for good').choices([
          ...['waiting', 'blocked', 'running', 'buried'],
        ]),
      )
      .addOption(jsonOption()),
    'accord jobs list',
    'accord jobs list --state buried --json',
  ).action(async (options) => (await import('./maintenance.ts')).listJobsCommand(readEnvironment(), options))
  withExamples(
    jobs
      .command('retry')
      .description('run failed (buried) jobs again; without ids, all of them')
      .argument('[ids...]', 'ids of jobs')
      .addOption(jsonOption()),
    'accord jobs retry',
    'accord jobs retry 17 18',
  ).action(async (ids, options) => (await import('./maintenance.ts')).retryJobsCommand(readEnvironment(), ids, options))

  withExamples(
    program
      .command('files')
      .description('uploaded files')
      .command('clean')
      .description(
        'remove uploads that no record used within a day and files of deleted records; move unreferenced contents to the trash',
      )
      .option('--all', 'also if more than a tenth of all files belong to no record')
      .addOption(jsonOption()),
    'accord files clean',
  )
    .addHelpText('after', '\nThe trash is files/trash in the data folder; contents are deleted there after seven days.')
    .action(async (options) => (await import('./maintenance.ts')).cleanFilesCommand(readEnvironment(), options))
}

function addUserCommands(user: Command): void {
  withExamples(
    user
      .command('create')
      .description('create a user; prints a random password once unless one is given')
      .requiredOption('--name <name>', 'full name')
      .requiredOption('--email <address>', 'e-mail address to sign in with')
      .requiredOption('--role <role>', 'name or id of a role')
      .option('--password-stdin', 'read the password from the first line of standard input')
      .option('--password <password>', 'password on the command line, where other users of this machine can read it')
      .addOption(jsonOption()),
    'accord user create --name "Ada Lovelace" --email ada@example.com --role Administrator',
    'pass show accord/ada | accord user create --name "Ada Lovelace" --email ada@example.com --role Sales --password-stdin',
  ).action(async (options) => (await import('./user.ts')).createUserCommand(readEnvironment(), options))

  withExamples(
    user
      .command('list')
      .description('print all users: id, e-mail address, name, role, and active, invited (no password yet) or disabled')
      .addOption(jsonOption()),
    'accord user list',
    "accord user list | awk -F '\\t' '$5 == \"disabled\"'",
  ).action(async (options) => (await import('./user.ts')).listUsersCommand(readEnvironment(), options))

  withExamples(
    user
      .command('set-password')
      .description("set a user's password and end all tokens and sessions of the user")
      .argument('<email>', 'e-mail address of the user')
      .option('--generate', 'generate a random password and print it once')
      .addOption(jsonOption()),
    'accord user set-password ada@example.com',
    'pass show accord/ada | accord user set-password ada@example.com',
    'accord user set-password ada@example.com --generate',
  )
    .addHelpText(
      'after',
      '\nAt a terminal the command prompts twice; otherwise it reads the first line of standard input.\n' +
        'It exits with 1 and changes nothing if there is no such user or the password is refused.',
    )
    .action(async (email, options) => (await import('./user.ts')).setPasswordCommand(readEnvironment(), email, options))

  withExamples(
    user
      .command('disable')
      .description('stop a user from signing in and end all tokens and sessions; records stay')
      .argument('<email>', 'e-mail address of the user')
      .addOption(jsonOption()),
    'accord user disable ada@example.com',
  )
    .addHelpText(
      'after',
      '\nIt exits with 1 if there is no such user, and for the last active user with every permission.',
    )
    .action(async (email, options) => (await import('./user.ts')).disableUserCommand(readEnvironment(), email, options))

  withExamples(
    user
      .command('enable')
      .description('let a user sign in again')
      .argument('<email>', 'e-mail address of the user')
      .addOption(jsonOption()),
    'accord user enable ada@example.com',
  ).action(async (email, options) => (await import('./user.ts')).enableUserCommand(readEnvironment(), email, options))
}

function addAccessCommands(program: Command): void {
  withExamples(
    program
      .command('token')
      .description('bearer tokens')
      .command('create')
      .description('create a token for a user and print it once')
      .requiredOption('--email <address>', 'e-mail address of the user that the token acts for')
      .requiredOption('--name <name>', 'purpose of the token')
      .option('--abilities <list>', 'comma-separated abilities such as leads:read,persons:*', '*')
      .option('--expires-in-days <days>', '1 to 365, or never', '90')
      .addOption(jsonOption()),
    'accord token create --email ada@example.com --name reports --abilities leads:read,reports:read',
    'TOKEN=$(accord token create --email ada@example.com --name shop --expires-in-days never)',
  )
    .addHelpText(
      'after',
      `\nAbilities: *, *:read, and <area>:read, <area>:write or <area>:* for these areas:\n  ${abilityAreas.join(', ')}\n` +
        "The area users covers users, roles, groups and other users' tokens; settings covers none of these.",
    )
    .action(async (options) => (await import('./token.ts')).createTokenCommand(readEnvironment(), options))
}

function addShellCommands(program: Command): void {
  withExamples(
    program
      .command('completion')
      .description('print a script with which a shell completes commands and options')
      .addArgument(program.createArgument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish'])),
    'accord completion bash > ~/.local/share/bash-completion/completions/accord',
    'accord completion zsh > ~/.zfunc/_accord',
    'accord completion fish > ~/.config/fish/completions/accord.fish',
  ).action(async (shell) => console.log((await import('./completion.ts')).completionScript(program, shell)))
}
