/**
 * Builds the package where it is installed from a git address: npm clones it, runs `npm install` in the clone, and packs what lies
 * there; nobody else builds it. In a checkout `npm ci` and `npm install` end at once, because `npm test`, `npm pack` and the others build
 * what they need. It hangs on `postprepare` and not on `prepare`, of which npm warns also whoever installs the tarball.
 *
 * Plain JavaScript: it may be an old Node that has to say that it is too old.
 */
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Set by npm for what it runs in a clone that it is about to pack: the addresses of such clones. */
const cloned = process.env._PACOTE_NO_PREPARE_
if (cloned) build()

function build() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < 22 || (major === 22 && minor < 18)) {
    console.error(
      [
        `Installing Vivarium from a git address builds it, which requires Node 22.18 or newer; this is Node ${process.versions.node}.`,
        'Use a newer Node (npx -y -p node@24 npm install …), allow install scripts, so that its dev dependency `node` provides one,',
        'or pack it in a clone (npm ci && npm pack) and install the tarball.',
      ].join('\n'),
    )
    process.exitCode = 1
    return
  }
  const root = dirname(dirname(fileURLToPath(import.meta.url)))
  const { status } = spawnSync(process.execPath, [join(root, 'scripts', 'build.ts')], { cwd: root, stdio: ['ignore', 1, 2] })
  process.exitCode = status ?? 1
}
