import de.bwaldvogel.mongo.MongoServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.h2.mvstore.MVStore;

/**
 * A server that speaks enough of MongoDB's protocol to try Headfast and to test it where no mongod can be had. Never more than that.
 *
 * <p>{@code StandIn [--port N] [--file PATH] [--commit-every-write]}: listens on loopback only (port 0: a free one), prints {@code READY <port>} once it
 * answers, and ends when its standard input ends, so that it cannot outlive who started it. Without {@code --file} everything is in memory. With
 * {@code --commit-every-write} a reply is sent only after the operating system has the write, so that SIGKILL loses nothing acknowledged (a power cut may).
 */
public final class StandIn {

    public static void main(String[] args) throws IOException {
        int port = 0;
        String file = null;
        boolean commitEveryWrite = false;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--port" -> port = Integer.parseInt(args[++i]);
                case "--file" -> file = args[++i];
                case "--commit-every-write" -> commitEveryWrite = true;
                default -> throw new IllegalArgumentException("unknown argument " + args[i]);
            }
        }
        if (commitEveryWrite && file == null) {
            throw new IllegalArgumentException("--commit-every-write needs --file");
        }

        MVStore.Builder builder = new MVStore.Builder().fileName(file);
        MVStore store = (commitEveryWrite ? builder.autoCommitDisabled() : builder).open();
        if (commitEveryWrite) {
            // What a commit replaced may be overwritten at once: the file stays twenty times smaller. Only a power cut could make that a loss.
            store.setRetentionTime(0);
        }
        StandInBackend backend = new StandInBackend(store, commitEveryWrite);
        backend.version(new StandInVersion());
        MongoServer server = new MongoServer(backend);
        // One thread reads, runs and answers every command: each is atomic, and no reply is encoded while another command changes its documents
        // (the library hands out its live ones).
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1, 1);
        if (file != null) {
            Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
        }

        System.out.println("READY " + server.getLocalAddress().getPort());
        System.out.flush();
        while (System.in.read() >= 0) {
            // What comes in means nothing; its end does.
        }
        System.exit(0);
    }
}
