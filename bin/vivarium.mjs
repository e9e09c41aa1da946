#!/usr/bin/env node
// Old syntax on purpose: an old Node must get as far as to say that it is too old.
var parts = process.versions.node.split('.')
var isNewEnough = Number(parts[0]) > 22 || (Number(parts[0]) === 22 && Number(parts[1]) >= 18)
if (isNewEnough) {
  import('../dist/cli/main.js').catch(error => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !/dist.cli.main\.js'? imported/.test(error.message)) throw error
    say('The command has not been built: dist/ is missing', [
      'In a clone, run npm run build',
      'If you installed from a git address, install again without --ignore-scripts, so that npm builds it',
    ])
  })
} else {
  say('Node 22.18 or newer is required; this is Node ' + process.versions.node, [
    ['Run npx -y -p node@24 vivarium'].concat(process.argv.slice(2).map(quoted)).join(' '),
    'Or install a newer Node: https://nodejs.org',
  ])
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'"
}

function say(fault, fixes) {
  process.stderr.write('vivarium: ' + fault + '\n  → ' + fixes.join('\n  → ') + '\n')
  process.exitCode = 1
}
