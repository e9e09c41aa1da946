/** How an HTTP server tells the runner its port: the system picks one, so runs never collide. */
export function announce(port) {
  process.stdout.write(`ready ${port}\n`)
}
