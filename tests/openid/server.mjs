// A certified OpenID Connect server for tests. Arguments: key and certificate in PEM.
// It prints its issuer, and ends when its standard input does.
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { Provider } from "oidc-provider";

const [key, cert] = process.argv.slice(2).map((path) => readFileSync(path));
const server = createServer({ key, cert });
server.listen(0, "127.0.0.1", () => {
  const issuer = `https://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "umpc",
      application_type: "native",
      token_endpoint_auth_method: "none",
      redirect_uris: ["http://127.0.0.1/"],
      response_types: ["code"],
      grant_types: ["authorization_code"],
    }],
    pkce: { required: () => true },
    cookies: { keys: ["made up"] },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
process.stdin.on("end", () => process.exit(0)).resume();
