/** A page that signs in by the link that a command printed, for tests. */

/** Signs in by a link, and calls the API. */
export async function signIn(link: string) {
  const { origin, hash } = new URL(link)
  const headers = { origin, 'content-type': 'application/json', 'x-vivarium': '1' }
  const body = JSON.stringify({ token: hash.slice('#k='.length) })
  const opened = await fetch(`${origin}/api/1/session`, { method: 'POST', headers, body })
  const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? ''
  const send = async (method: string, path: string, given?: unknown) => {
    const sent = given === undefined ? {} : { body: JSON.stringify(given) }
    const answer = await fetch(`${origin}/api/1${path}`, { method, headers: { ...headers, cookie }, ...sent })
    return (await answer.json()) as Record<string, unknown>
  }
  return { status: opened.status, send }
}
