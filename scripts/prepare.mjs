/**
 * `prepare`, which npm runs in two situations that need different things. Where the package is installed from a git address or a
 * folder, nobody else builds it: then it is built. After `npm ci` in a checkout it is not, because `npm test`, `npm pack` and the
 * others build what they need. Plain JavaScript without modern syntax: it may be an old Node that has to say that it is too old.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

var root = dirname(dirname(fileURLToPath(import.meta.url)))
// Where npm was started: inside of the checkout, or in the project that installs it.
var way = relative(root, process.env.INIT_CWD || root)
var isInside = !way.startsWith('..') && !isAbsolute(way)

if (!isInside) build()

function build() {
  var found = process.versions.node.split('.').map(Number)
  if (found[0] < 22 || (found[0] === 22 && found[1] < 18))
    return fail([
      'Vivarium is built where it is installed from a git address or a folder, and that needs Node 22.18 or newer; this is ' +
        process.version +
        '.',
      'Its dev dependency `node` brings one where install scripts may run. Else use a newer Node (npx -p node@24 npm install …),',
      'or pack it in a clone (npm ci && npm pack) and install the tarball.',
    ])
  if (!existsSync(join(root, 'node_modules', 'rolldown')))
    return fail(['What Vivarium is built with is not installed: run `npm ci` in ' + root + ' first.'])
  // npm shows what is on standard output where this fails.
  var built = spawnSync(process.execPath, [join(root, 'scripts', 'build.ts')], { cwd: root, stdio: ['ignore', 1, 2] })
  process.exitCode = built.status === null ? 1 : built.status
}

function fail(lines) {
  console.error(lines.join('\n'))
  process.exitCode = 1
}
