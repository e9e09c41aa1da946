/**
 * `npm run docs`: builds the site into .cache/site. `-- --serve` serves it on loopback, `--port N` there; `--no-shots` leaves the screenshots
 * out; `--out FOLDER` writes elsewhere; `--base /docs/` is where the site will lie on its host, which only its page for lost readers needs.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../scripts/lib/files.ts'
import { buildSite } from './build.ts'
import { serveSite } from './serve.ts'
import { currentShots } from './shots/take.ts'

const { values } = parseArgs({
  options: {
    serve: { type: 'boolean', default: false },
    port: { type: 'string', default: '7460' },
    out: { type: 'string', default: join(root, '.cache', 'site') },
    base: { type: 'string', default: '/' },
    shots: { type: 'boolean', default: true },
  },
  allowNegative: true,
})
const shots = values.shots ? await currentShots() : []
const { folder, pages, diagrams } = await buildSite(values.out, shots, values.base)
console.log(`site: ${pages.length} pages, ${diagrams} diagrams, ${shots.length} screenshots in ${folder}`)
if (values.serve) {
  const { url } = await serveSite(folder, Number(values.port))
  console.log(`site: ${url}`)
}
